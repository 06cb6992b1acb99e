"""Plugins for the rules a policy can have beyond those of KubeAdmiral: each does nothing where the policy has no such rule."""
