"""The loops: they watch, ask `plan/` what to do, and write the difference. Every decision is made elsewhere.

One file a loop at the top (federate, dispatch, collect, aggregate, clusters, migrate, failover, permissions); what they share is
in the folders. `manager` puts them together.
"""
