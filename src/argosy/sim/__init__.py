"""Simulated member clusters: an API server each (`member`), with the controllers, scheduler and kubelets of a real one.

Nothing is computed on their nodes. `fleet` runs several in one process.
"""
