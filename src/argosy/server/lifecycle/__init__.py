"""The controllers of a Kubernetes control plane itself, each a loop: namespaces, garbage collection, service accounts, roles.

Besides them: definitions that are being deleted, events that expire, history that is compacted.
"""
