"""Access to a member: connection, credentials, identity, circuit breaker, probes, joining and leaving.

`member` is one connected cluster; `access` keeps its connection and rights. The loop `control/clusters` owns both.
"""
