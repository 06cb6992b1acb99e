"""Speaking Kubernetes: client, transports, informer, work queue, patches, selectors, quantities, leases, kubeconfigs.

Knows nothing of federation, nor of our server.
"""
