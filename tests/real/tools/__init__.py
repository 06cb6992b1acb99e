"""Real tools of others on a federation: kubectl, Helm, and the health checks of Argo CD."""
