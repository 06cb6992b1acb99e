"""Objects as readers see them: the metadata every Kubernetes object has, and decoding into projections.

A projection is a msgspec Struct with a `metadata: Metadata` field and whatever else its reader needs; decoding one skips
the rest of the bytes. Whole objects are plain dicts. Nothing here knows a particular kind.
"""

import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import orjson

__all__ = [
    "UNREADABLE",
    "DecodeError",
    "HasMetadata",
    "Identified",
    "Identity",
    "Metadata",
    "OwnerReference",
    "Partial",
    "decode",
    "encode",
    "join_key",
    "key_of",
    "overgrown",
    "split_key",
    "version_number",
    "weight",
]

T = TypeVar("T")

# Servers and clients written in Go may send null for an empty map, list or time. Readers never see None: `__post_init__`
# replaces it, so only the decoder's type allows None.
if TYPE_CHECKING:
    Text = str
    Labels = dict[str, str]
    Finalizers = tuple[str, ...]
else:
    Text = str | None
    Labels = dict[str, str] | None
    Finalizers = tuple[str, ...] | None


#: What msgspec raises for invalid bytes.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: Versions are 64-bit numbers.
_LONGEST_VERSION = 20
#: Bytes of all annotations of an object, the limit of Kubernetes; labels, finalizers and owners get as much each.
LARGEST_MAP = 256 * 1024
#: Largest object in which nulls are searched one by one; in a larger one, null for "not set" is an error.
_LARGEST_WITH_NULLS = 1024 * 1024


#: Memory of a value beyond its text: measured on pods, nodes and copies of Deployments.
_PART = 48
_encoder = msgspec.json.Encoder()
_written = bytearray()


class DecodeError(ValueError):
    """Bytes that are not the object they should be; the message says where."""


# `gc=False` here and in projections: values decoded from JSON have no cycles, and collecting hundreds of thousands of them
# again and again costs more than decoding them.


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


if TYPE_CHECKING:
    Owners = tuple[OwnerReference, ...]
else:
    Owners = tuple[OwnerReference, ...] | None


class Identity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The least a cache must know of an object: its identity and version. For projections of many objects."""

    name: Text = ""
    namespace: Text = ""
    uid: Text = ""
    resource_version: Text = ""

    def __post_init__(self) -> None:
        me: Any = self
        if me.namespace is None or me.name is None or me.uid is None or me.resource_version is None:
            _replace_nulls(self)


class Metadata(Identity, frozen=True):
    """ObjectMeta without managedFields. Frozen; its maps must not be changed."""

    generation: int = 0
    creation_timestamp: Text = ""
    deletion_timestamp: str | None = None
    labels: Labels = {}
    annotations: Labels = {}
    finalizers: Finalizers = ()
    owner_references: Owners = ()

    def __post_init__(self) -> None:
        me: Any = self
        if (
            me.labels is None
            or me.annotations is None
            or me.creation_timestamp is None
            or me.namespace is None
            or me.finalizers is None
            or me.owner_references is None
            or me.name is None
            or me.uid is None
            or me.resource_version is None
        ):
            _replace_nulls(self)


def _replace_nulls(metadata: Identity) -> None:
    for field in msgspec.structs.fields(metadata):
        if field.name != "deletion_timestamp" and getattr(metadata, field.name) is None:
            empty = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            msgspec.structs.force_setattr(metadata, field.name, empty)


class Partial(msgspec.Struct, frozen=True, gc=False):
    """Any object, of which only the metadata matters."""

    metadata: Metadata = Metadata()


class Identified(Protocol):
    """What an informer's projection must have."""

    @property
    def metadata(self) -> Identity: ...


class HasMetadata(Protocol):
    """A projection with all of the metadata."""

    @property
    def metadata(self) -> Metadata: ...


def key_of(metadata: Identity) -> str:
    """`namespace/name`, or the bare name of an object without a namespace."""
    return join_key(metadata.namespace, metadata.name)


def join_key(namespace: str | None, name: str) -> str:
    """The key of an object; the namespace is empty or None if there is none."""
    return f"{namespace}/{name}" if namespace else name


def split_key(key: str) -> tuple[str, str]:
    """The namespace ("" when there is none) and name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def weight(value: Any) -> int:
    """Approximate memory of a decoded value in bytes: within a third for objects, and at least half of it for any value.

    Raises what `msgspec` raises for values that cannot be encoded.
    """
    _encoder.encode_into(value, _written)
    return len(_written) + _PART * (_written.count(b",") + _written.count(b"{") + _written.count(b"["))


def overgrown(metadata: Identity | None, raw: bytes) -> str:
    """Which part of an object's metadata is larger than any server stores; empty if none is."""
    if len(raw) <= LARGEST_MAP or not isinstance(metadata, Metadata):
        return ""
    for name, texts in (
        ("annotations", itertools.chain.from_iterable(metadata.annotations.items())),
        ("labels", itertools.chain.from_iterable(metadata.labels.items())),
        ("finalizers", metadata.finalizers),
        ("ownerReferences", (text for each in metadata.owner_references for text in msgspec.structs.astuple(each)[:4])),
    ):
        if sum(map(len, texts)) > LARGEST_MAP:
            return f"metadata.{name}: more than {LARGEST_MAP} bytes"
    return ""


def version_number(resource_version: str) -> int | None:
    """A resourceVersion as a number, by which versions of one resource are ordered; None when it is not one."""
    if len(resource_version) > _LONGEST_VERSION or not resource_version.isascii() or not resource_version.isdigit():
        return None
    return int(resource_version)


def decode(raw: bytes, into: type[T]) -> T:
    """Decode bytes as `bytes`, `dict` or a projection; raises DecodeError.

    A null for a value of the projection means "not set", as in Kubernetes: only then the slow path is taken.
    """
    if into is bytes:
        return raw  # type: ignore[return-value]
    try:
        if into is dict:
            value = orjson.loads(raw)
            if not isinstance(value, dict):
                raise DecodeError("not a JSON object")
            return value  # type: ignore[return-value]
        return msgspec.json.decode(raw, type=into)
    except msgspec.ValidationError as error:
        if b"null" not in raw or len(raw) > _LARGEST_WITH_NULLS:
            raise DecodeError(str(error)) from None
        return _decode_without_nulls(raw, into, error)
    except (*UNREADABLE, orjson.JSONDecodeError) as error:
        raise DecodeError(f"not valid JSON: {error}") from None


def _decode_without_nulls(raw: bytes, into: type[T], error: msgspec.ValidationError) -> T:
    try:
        return msgspec.convert(_without_nulls(orjson.loads(raw)), type=into)
    except (*UNREADABLE, orjson.JSONDecodeError):
        raise DecodeError(str(error)) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def encode(body: Any) -> bytes:
    """The JSON of a request body: bytes as they are, a dict or list by orjson, a Struct by msgspec."""
    if isinstance(body, bytes):
        return body
    if isinstance(body, msgspec.Struct):
        return msgspec.json.encode(body)
    return orjson.dumps(body)
