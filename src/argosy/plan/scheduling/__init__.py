"""Which clusters run an object: the scheduling unit, the framework that runs plugins, profiles, and when to schedule again.

The plugins are in `plan/plugins`, the division of replicas in `plan/replicas`.
"""
