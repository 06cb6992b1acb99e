"""Replicas plugins: each runs one planner of `plan/replicas` over the selected clusters."""
