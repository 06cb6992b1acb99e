"""Pods: their spec, shared by all kinds that have a pod template."""
