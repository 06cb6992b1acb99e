"""The same workload scenarios on a simulated and on a stock member, step by step, and what of them is compared."""
