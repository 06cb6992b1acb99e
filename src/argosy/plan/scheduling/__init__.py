"""Which clusters run an object: the scheduling unit, the framework that runs plugins, profiles, and when to schedule again.

The plugins themselves are in `plan/plugins`, numbers of replicas in `plan/replicas`.
"""
