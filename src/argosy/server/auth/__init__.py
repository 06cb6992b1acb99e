"""Access: who may talk to the server and what they may do (certificates, tokens, RBAC, reviews)."""
