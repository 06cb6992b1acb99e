"""Pods: their spec, field by field, shared with every kind that has a pod template."""
