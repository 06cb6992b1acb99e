"""What may look at, change or refuse a write before it is validated: the chain, and the plugins Kubernetes runs by default."""
