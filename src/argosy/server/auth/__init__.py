"""Access: authentication and authorisation. Certificates, tokens, impersonation, RBAC, reviews."""
