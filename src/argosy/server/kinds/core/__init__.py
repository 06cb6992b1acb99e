"""The core group without pods and services: config maps, secrets, namespaces, nodes, volumes, quotas."""
