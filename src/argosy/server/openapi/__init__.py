"""OpenAPI: what kinds look like and which requests they take, for `kubectl explain`, validation and generated clients.

`documents` are made of `schemas` and `operations`, and answered by `serving`: version 3 by group and version, version 2 as one.
"""

from argosy.server.openapi.documents import OpenApi
from argosy.server.openapi.serving import OpenApiResponder

__all__ = ["OpenApi", "OpenApiResponder"]
