"""The loops: they watch, ask `plan/` what to do, and write the difference. `plan/` makes every decision.

One file per loop at the top (federate, dispatch, collect, aggregate, clusters, migrate, failover, permissions); what they
share is in the folders. `manager` assembles them.
"""
