"""What a Kubernetes control plane does by itself: namespaces come and go whole, dependents follow their owners, every
namespace has its service account, and the bootstrap roles exist. Each part is a loop over the server's own change feed."""
