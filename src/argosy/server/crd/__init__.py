"""Custom resources: kinds the server learns while it runs, from CustomResourceDefinition objects (`definitions`).

Schemas are judged by `structural`, and compiled by `strategy` into pruning, defaulting and validation when first needed.
"""

from argosy.server.crd.definitions import DEFINITIONS, CustomResources
from argosy.server.crd.naming import accept_names
from argosy.server.crd.structural import rule_warnings

__all__ = ["DEFINITIONS", "CustomResources", "accept_names", "rule_warnings"]
