"""Simulated member clusters: an API server each (`member`), with the controllers, scheduler and kubelets of a real one.

Their pods run no processes. `fleet` runs several members in one process.
"""
