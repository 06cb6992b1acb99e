"""What a Kubernetes control plane does by itself, each part a loop: namespaces, garbage collection, service accounts, roles.

Besides them: definitions on their way out, events that expire, history that is compacted.
"""
