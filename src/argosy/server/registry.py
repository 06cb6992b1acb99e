"""The registry of kinds: the served kinds, and the special rules for writes of each kind.

`Kind` has what discovery and routing need; `Strategy` is the behaviour of writes. Both are values without I/O. Built-in kinds
come from `kinds/`, one file per API group; custom ones from `crd/` as their definitions come and go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from argosy.server import numbers
from argosy.server.fielderrors import FieldError

__all__ = ["Decoded", "Kind", "Registry", "ScalePaths", "Strategy"]

Object = dict[str, Any]

ALL_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


class Decoded(msgspec.Struct, frozen=True):
    """The result of decoding: unknown fields (dotted paths). The JSON reader finds duplicate fields."""

    unknown: tuple[str, ...] = ()
    #: Type mismatches: the request is a 400, as with kube-apiserver's typed decoder.
    mistyped: tuple[str, ...] = ()


class ScalePaths(msgspec.Struct, frozen=True):
    """The paths of the scale subresource's numbers (dotted, without a leading dot)."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    #: Path of the selector; an object is rendered to a selector string, a string is taken as is.
    selector: str | None = "spec.selector"


class Strategy:
    """Behaviour of writes of one kind. The defaults suit a kind with a spec, a status and no rules of its own.

    Every method is pure, and runs in a thread if an object is large; `default` and `prepare_*` change their argument, which
    belongs to the request.
    """

    #: metadata.generation is kept and grows when anything but metadata and status changes.
    generation: bool = True
    #: How names are checked: "subdomain" (RFC 1123), "label" (RFC 1123), "label1035", "path" (any path segment).
    name_rule: str = "subdomain"
    #: PUT of an absent object creates it.
    create_on_update: bool = False
    #: PUT without a resourceVersion overwrites.
    unconditional_update: bool = True
    #: The metadata of a new object is validated only if the rest of it is valid.
    metadata_last: bool = False
    #: An update is checked by the rule for generateName as well.
    validates_prefix: bool = False
    #: DELETE without a propagation policy orphans the dependents (Jobs of batch/v1) instead of deleting them.
    orphan_by_default: bool = False
    #: Parts of an object have no type, so that their numbers are kept as written (`numbers`).
    untyped: bool = False
    #: Extra field selectors besides metadata.name and metadata.namespace: dotted path -> value of an object.
    selectable: Mapping[str, Callable[[Object], str]] = {}
    #: The error of a kind with field selectors of its own for other fields.
    unselectable: str = "field label not supported: {}"

    @property
    def ready(self) -> bool:
        """False while `prepare` has long work to do."""
        return True

    def prepare(self) -> None:
        """Prepare what the other methods need. Otherwise they do it themselves."""

    def effort(self, size: int) -> int:
        """The cost of reading or writing an object of so many bytes, in bytes of an ordinary one."""
        return size

    def decode(self, obj: Object) -> Decoded:
        """Check types and remove unknown fields in place; returns the findings."""
        return Decoded()

    def unreadable(self, obj: Object) -> str | None:
        """An error of decoding that takes precedence over unreadable metadata."""
        return None

    def default(self, obj: Object) -> None:
        """Fill in defaults in place. Runs on create, update and patch, before validation."""

    def prepare_create(self, obj: Object) -> None:
        obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        """Called for writes to the main resource: by default status cannot be changed there."""
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def prepare_status(self, new: Object, old: Object) -> None:
        """Called for writes to /status: everything but status (and, by default, metadata) comes from the stored object."""
        for key in list(new):
            if key not in ("status", "metadata", "apiVersion", "kind"):
                del new[key]
        for key, value in old.items():
            if key not in ("status", "metadata"):
                new[key] = value

    def same(self, new: Any, old: Any) -> bool:
        """Whether an object, or a part of one, is unchanged."""
        return numbers.same(new, old) if self.untyped else bool(new == old)

    def generation_grows(self, new: Object, old: Object) -> bool:
        """Whether this write is a new generation, if the kind has generations: by default, a change of more than metadata and
        status."""
        keys = (new.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
        return not all(self.same(new.get(key), old.get(key)) for key in keys)

    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new)

    def validate_parts(self, obj: Object) -> list[FieldError]:
        """The rules that apply even to an object of a wrong kind or version."""
        return []

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def settle(self, obj: Object) -> None:
        """For a valid object about to be stored: remove what is not stored."""

    def begin_deletion(self, obj: Object, at: str) -> bool:
        """Kinds with a deletion life cycle of their own mark the object here and return true; `at` is the time.

        All others are marked as being deleted only while finalizers or a grace period keep them.
        """
        return False

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        """Warnings about a valid create (`old` is None) or update; the generation is final."""
        return []


class Kind(msgspec.Struct, frozen=True):
    """One served resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = ALL_VERBS
    #: Any of "status", "scale", "finalize", "token", "eviction", "binding", "approval", ...
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths | None = None
    #: The version in which objects of this resource are stored; other versions are converted.
    storage_version: str = ""
    #: Conversions to and from the storage version, in place; None means only apiVersion differs.
    to_storage: Callable[[Object], None] | None = None
    from_storage: Callable[[Object], None] | None = None
    #: Objects stored before this version followed other rules: `from_storage` updates them when they are read.
    rules_since: int = 0
    #: What must be prepared before objects are written, or converted.
    needs: tuple[Strategy, ...] = ()
    #: Storage group where it differs (core Events and events.k8s.io Events are the same objects).
    storage_group: str | None = None
    #: A warning with every response if this version is deprecated.
    deprecation: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def builtin(self) -> bool:
        """One of Kubernetes' own kinds: its strategy has a type from the schema tables."""
        return getattr(self.strategy, "type", None) is not None

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def resource(self) -> str:
        """`plural.group`, as kube-apiserver names it in messages; the bare plural in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_key(self) -> str:
        """Shared by all versions of the resource: the prefix of its objects in the store."""
        group = self.group if self.storage_group is None else self.storage_group
        return f"{group}/{self.plural}" if group else f"core/{self.plural}"


class Registry:
    """The kinds served right now. `generation` grows with every change, so that discovery can be cached."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self.generation = 0
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        #: By the prefix of their objects in the store, as of a generation.
        self._stored: dict[str, list[Kind]] = {}
        self._stored_of = 0
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind, replacing an earlier definition of the same group, version and plural."""
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        if self._kinds.pop((group, version, plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def stored_under(self, storage_key: str) -> Sequence[Kind]:
        """All versions of a resource, by the prefix of its objects in the store."""
        if self._stored_of != self.generation:
            self._stored = {}
            for kind in self._kinds.values():
                self._stored.setdefault(kind.storage_key, []).append(kind)
            self._stored_of = self.generation
        return self._stored.get(storage_key, ())

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))
