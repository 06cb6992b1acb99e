"""Custom resources: kinds the server learns while it runs, from CustomResourceDefinition objects.

`definitions` keeps the registry in step; a version's schema is compiled once, when it is first needed, into pruning,
defaulting and validation (`strategy`). Schemas themselves are judged by `structural`. Conversion between versions only
changes apiVersion.
"""

from argosy.server.crd.definitions import DEFINITIONS, CustomResources
from argosy.server.crd.naming import accept_names
from argosy.server.crd.structural import rule_warnings

__all__ = ["DEFINITIONS", "CustomResources", "accept_names", "rule_warnings"]
