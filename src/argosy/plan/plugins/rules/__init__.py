"""Plugins for policy rules beyond KubeAdmiral's: each does nothing if the policy has no such rule."""
