"""Digest: everything that decides one cluster's copy, in a few characters. Recorded with each write, so that it can be told
later whether a cluster has what is wanted there."""

from collections.abc import Mapping
from hashlib import blake2b

import orjson

from argosy.api import keys
from argosy.plan.copies.placement import Patches
from argosy.plan.fields import Json

__all__ = ["digest", "template_digest"]


def template_digest(template: Json) -> str:
    """Digest of a template; computed once per object, not once per cluster."""
    return blake2b(orjson.dumps(template, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def digest(template_digest: str, patches: Patches, annotations: Mapping[str, str]) -> str:
    """Digest of everything that decides one cluster's object."""
    retains = annotations.get(keys.RETAIN_REPLICAS) == "true"
    content = orjson.dumps([template_digest, patches, retains], option=orjson.OPT_SORT_KEYS)
    return blake2b(content, digest_size=8).hexdigest()
