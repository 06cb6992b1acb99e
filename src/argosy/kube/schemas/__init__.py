"""Data: tables of Kubernetes' built-in kinds, written by scripts/distill_schemas.py and read by argosy.kube.schema.

The descriptions are those of the Kubernetes API (Apache License 2.0).
"""
