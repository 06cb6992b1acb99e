"""networking.k8s.io/v1: Ingresses, their classes, network policies, and the addresses of services."""
