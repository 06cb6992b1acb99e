"""Selection: which objects of a resource a list, watch or deletecollection selects."""

from argosy.kube.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from argosy.server import status
from argosy.server.registry import Kind
from argosy.server.watchcache.entry import Entry, object_key

__all__ = ["Selection", "check_selectors"]

#: Each is checked for each object, and with each change as long as a watch lives.
MAX_REQUIREMENTS = 1000
#: Up to so many cost hardly anything.
FEW_REQUIREMENTS = 16
_METADATA_FIELDS = {"metadata.name", "metadata.namespace"}


class Selection:
    """`matches` assumes entries of the right resource; an empty namespace means all of them."""

    __slots__ = ("fields", "key", "kind", "labels", "namespace")

    def __init__(self, kind: Kind, namespace: str = "", labels: str = "", fields: str = "", name: str = ""):
        """Raises the 400 kube-apiserver gives for selectors it cannot parse or does not support."""
        self.kind = kind
        self.namespace = namespace
        try:
            self.labels: LabelSelector | None = parse_label_selector(labels) if labels else None
            self.fields: FieldSelector | None = parse_field_selector(fields) if fields else None
        except SelectorError as error:
            raise status.bad_request(str(error)) from None
        if self.requirements > MAX_REQUIREMENTS:
            raise status.bad_request(f"a selector may have at most {MAX_REQUIREMENTS} requirements")
        exact: dict[str, str] = {}
        if self.fields is not None:
            for field, *_ in self.fields:
                known = field in _METADATA_FIELDS or field in kind.strategy.selectable
                if not known or (field == "metadata.namespace" and not kind.namespaced and not kind.builtin):
                    raise status.bad_request(_unsupported(kind, field))
            exact = self.fields.exact()
        name = name or exact.get("metadata.name", "")
        within = namespace or exact.get("metadata.namespace", "")
        #: Set when at most one object can match.
        self.key = object_key(kind, within, name) if name and (within or not kind.namespaced) else ""

    @property
    def requirements(self) -> int:
        """The cost of checking each entry."""
        labels = len(self.labels.requirements) if self.labels is not None else 0
        return labels + (sum(1 for _ in self.fields) if self.fields is not None else 0)

    @property
    def many(self) -> int:
        """The number of requirements if there are many, else 0."""
        return self.requirements if self.requirements > FEW_REQUIREMENTS else 0

    @property
    def prefix(self) -> str:
        """All keys that can match start with this."""
        if self.namespace and self.kind.namespaced:
            return f"{self.kind.storage_key}/{self.namespace}/"
        return f"{self.kind.storage_key}/"

    @property
    def everything(self) -> bool:
        """Whether everything under the prefix is selected."""
        return self.labels is None and self.fields is None and not self.key

    def matches(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self.key and entry.key != self.key:
            return False
        if self.labels is not None and not self.labels.matches(entry.labels):
            return False
        return self.fields is None or self.fields.matches(lambda field: self._field(entry, field))

    def _field(self, entry: Entry, field: str) -> str:
        if field == "metadata.name":
            return entry.name
        if field == "metadata.namespace":
            return entry.namespace
        return entry.fields(self.kind).get(field, "")


def check_selectors(labels: str, fields: str) -> None:
    """Raises 400 for an invalid selector; whether the kind supports it is checked after the other options."""
    try:
        if labels:
            parse_label_selector(labels)
        if fields:
            parse_field_selector(fields)
    except SelectorError as error:
        raise status.bad_request(str(error)) from None


def _unsupported(kind: Kind, field: str) -> str:
    # Kinds with field selectors of their own have another message than those with only the common two.
    if kind.strategy.selectable or not kind.builtin:
        return kind.strategy.unselectable.format(field)
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
