"""Work that leaves clusters: failed ones (`failover`, and `failback` once they return), full ones (`auto_migration`), and those
a user wants it to leave (`custom_migration`). Where it goes instead is scheduling's decision.
"""
