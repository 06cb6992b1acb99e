"""The way into a member: connection, credentials, identity, circuit breaker, probes, joining and leaving.

`member` is one connected cluster; `access` keeps the connection and its rights. The loop that owns both is `control/clusters`.
"""
