"""OpenAPI: what kinds look like and which requests they take, for `kubectl explain`, validation and generated clients.

`documents` answers requests and keeps what it made; `schemas` holds the components, `operations` the paths. Version 3 is
served as one document a group and version, version 2 as one for all.
"""

from argosy.server.openapi.documents import OpenApi

__all__ = ["OpenApi"]
