"""Workloads that leave clusters: failed ones (`failover`, and `failback` once they return), full ones (`auto_migration`), and
those a user wants to empty (`custom_migration`). Scheduling decides where the workloads go.
"""
