"""Bodies in Kubernetes' protobuf, decoded into the same trees as JSON bodies. Responses are JSON: all clients accept both.

kubectl sends its typed requests (`create deployment`, `auth can-i`, `create token`) in protobuf and cannot be told otherwise.
"""

from argosy.server.protobuf.objects import ProtobufError, decode

__all__ = ["MEDIA_TYPE", "ProtobufError", "decode"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
