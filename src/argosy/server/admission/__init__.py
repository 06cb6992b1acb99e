"""Admission: plugins that check, change or refuse a write. The chain, and the plugins Kubernetes runs by default."""
