"""Bodies in Kubernetes' protobuf, read into the same trees JSON bodies give. Answers are JSON: all clients accept both.

kubectl sends its typed requests (`create deployment`, `auth can-i`, `create token`) in protobuf and cannot be told otherwise.
The numbers of the fields come from `messages.json.z`, made by `scripts/distill_protobuf.py`: message name -> fields, each
[number, JSON name, type, shape]. A type is s(tring), b(ytes), ?(bool), i(nteger), d(ouble), f(loat) or a message's name; a
shape is "" (JSON leaves its zero value out), "p" (JSON shows it: pointers, required fields, structs), "*" (list), "m" (map) or
"." (inlined).
"""

from argosy.server.protobuf.objects import ProtobufError, decode

__all__ = ["MEDIA_TYPE", "ProtobufError", "decode"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
