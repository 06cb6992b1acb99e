"""Call: one request as the verbs see it, parsed from path, query and method.

Only the kind is looked up, in the registry; the user is authorised before a Call is executed.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from argosy.kube.selectors import SelectorError, parse_field_selector
from argosy.kube.transport import Request
from argosy.server import status
from argosy.server.auth.identity import Attributes, User
from argosy.server.fielderrors import FieldError, not_supported
from argosy.server.registry import Kind, Registry
from argosy.server.strconv import parse_int

__all__ = ["Call", "Target", "parse_target"]

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = {"status", "finalize"}
#: A longer field selector is not searched for a name.
_LONGEST_NAME_SELECTOR = 1024
_FIELD_VALIDATION = ("Ignore", "Warn", "Strict")


class Target:
    """What a path names: a resource, one of its objects, or a subresource; `verb` is the meaning of the method there."""

    __slots__ = ("group", "name", "namespace", "plural", "selected", "subresource", "verb", "version")

    def __init__(self, group: str, version: str, parts: list[str], method: str, *, watch: bool, selected: str = ""):
        self.group = group
        self.version = version
        self.namespace = self.name = self.subresource = ""
        legacy = False
        if parts[0] == "watch" and len(parts) > 1:
            # The older form of a watch, and the only one that watches a single object by its path.
            parts = parts[1:]
            legacy = True
        if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            self.namespace, parts = parts[1], parts[2:]
        self.plural = parts[0]
        if len(parts) > 1:
            self.name = parts[1]
        if len(parts) > 2:
            self.subresource = "/".join(parts[2:])
        #: The one name that a collection's field selector selects: a right to that object suffices.
        self.selected = selected
        self.verb = self._verb(method, watch=legacy or (watch and not self.name))

    def _verb(self, method: str, *, watch: bool) -> str:
        verb = _VERBS.get(method)
        if verb is None:
            raise status.method_not_allowed()
        if verb == "get" and watch:
            return "watch"
        if verb == "get" and not self.name:
            return "list"
        if verb == "delete" and not self.name:
            return "deletecollection"
        return verb

    def attributes(self, user: User) -> Attributes:
        return Attributes(
            user=user,
            verb=self.verb,
            group=self.group,
            version=self.version,
            resource=self.plural,
            subresource=self.subresource,
            # A namespace is authorised as an object within itself, as in Kubernetes.
            namespace=self.namespace or (self.name if self.plural == "namespaces" and not self.group else ""),
            name=self.name or self.selected,
        )


def parse_target(request: Request) -> Target | None:
    """None if the path is not a resource's (discovery, health, …)."""
    parts = [unquote(part) if "%" in part else part for part in request.path.split("/")]
    # An empty segment at the end is a trailing slash.
    if parts[-1] == "":
        parts.pop()
    if len(parts) > 3 and parts[1] == "api":
        group, version, rest = "", parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return None
    if not all(rest):
        raise status.not_served()
    watch = any(key == "watch" and value in ("1", "true", "True") for key, value in request.query)
    selected = next((_selected_name(value) for key, value in request.query if key == "fieldSelector"), "")
    return Target(group, version, rest, request.method, watch=watch, selected=selected)


def _selected_name(selector: str) -> str:
    if len(selector) > _LONGEST_NAME_SELECTOR or "metadata.name" not in selector:
        return ""
    try:
        exact = parse_field_selector(selector).exact()
    except SelectorError:
        return ""  # refused later, after authorisation
    return exact.get("metadata.name", "")


class Call:
    """One request to a served kind. `warnings` collects the texts of Warning headers."""

    __slots__ = (
        "body",
        "headers",
        "kind",
        "name",
        "namespace",
        "query",
        "subresource",
        "user",
        "values",
        "verb",
        "warnings",
    )

    def __init__(self, target: Target, kind: Kind, request: Request, user: User):
        self.verb = target.verb
        self.kind = kind
        self.namespace = target.namespace
        self.name = target.name
        self.subresource = target.subresource
        self.user = user
        self.values = request.query
        #: The first value of each parameter.
        self.query: dict[str, str] = dict(reversed(list(request.query))) if request.query else {}
        self.headers: Mapping[str, str] = request.headers
        self.body = request.body
        self.warnings: list[str] = [kind.deprecation] if kind.deprecation else []

    @classmethod
    def of(cls, target: Target, registry: Registry, request: Request, user: User) -> "Call":
        kind = registry.find(target.group, target.version, target.plural)
        if kind is None:
            raise status.not_served()
        if target.subresource and target.subresource.partition("/")[0] not in kind.subresources:
            raise status.not_served() if kind.builtin else status.not_found(kind, target.name)
        if target.namespace and not kind.namespaced:
            raise status.not_served()
        if kind.namespaced and not target.namespace:
            if target.name:
                raise status.not_served()
            if target.verb in ("create", "deletecollection"):
                raise status.method_not_allowed()
        return cls(target, kind, request, user)

    def but(
        self,
        *,
        kind: Kind | None = None,
        verb: str | None = None,
        subresource: str | None = None,
        name: str | None = None,
    ) -> "Call":
        """The same call as another: for the Scale of an object, or for the object of its subresource."""
        other = Call.__new__(Call)
        for field in Call.__slots__:
            setattr(other, field, getattr(self, field))
        other.kind = self.kind if kind is None else kind
        other.verb = self.verb if verb is None else verb
        other.subresource = self.subresource if subresource is None else subresource
        other.name = self.name if name is None else name
        return other

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in ("1", "true", "True", "TRUE", "t", "T")

    def integer(self, name: str) -> int:
        text = self.query.get(name, "")
        if not text:
            return 0
        try:
            return parse_int(text)
        except ValueError as error:
            raise status.bad_request(str(error)) from None

    @property
    def dry_run(self) -> list[str]:
        """The dryRun parameters, not checked; empty for a real write."""
        return [value for key, value in self.values if key == "dryRun" and value]

    def write_options(self, options: str) -> "WriteOptions":
        """dryRun and fieldValidation, checked; `options` is the kind in the error (CreateOptions, …)."""
        dry_run = self.dry_run
        validation = self.query.get("fieldValidation", "")
        errors: list[FieldError] = []
        if any(value != "All" for value in dry_run):
            errors.append(not_supported("dryRun", dry_run, ["All"]))
        if validation and validation not in _FIELD_VALIDATION:
            errors.append(not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
        manager = self.query.get("fieldManager", "")
        if len(manager) > 128:
            errors.append(FieldError("FieldValueTooLong", "fieldManager", "", "may not be more than 128 bytes"))
        if errors:
            raise status.invalid_kind("meta.k8s.io", options, "", errors)
        return WriteOptions(bool(dry_run), validation or "Warn")


class WriteOptions:
    __slots__ = ("dry_run", "validation")

    def __init__(self, dry_run: bool, validation: str):
        self.dry_run = dry_run
        self.validation = validation
