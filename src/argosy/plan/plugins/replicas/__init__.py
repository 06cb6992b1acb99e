"""Replicas plugins: each runs one planner of `plan/replicas` over the clusters that were selected."""
