"""Access: who may talk to the server and what they may do. Certificates, tokens, impersonation, RBAC, reviews."""
