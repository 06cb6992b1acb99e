"""The generator: a seed and a length give a sequence, always the same one.

A sequence is about a few kinds and a few names, so that its steps meet: objects exist when they are created again, are gone
when they are patched, and are changed behind the back of a writer that read them before.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

from tests.real.sequences.steps import ABSENT, Path, Step, change, namespaces
from tests.real.sequences.subjects import COMMON, SUBJECTS, Subject, Tried, collection

__all__ = ["sequence"]

_NAMES = ("one", "two", "three")
_SELECTORS = (
    "color=red", "color!=red", "color in (red, blue)", "color", "!color", "color notin (red)", "color=red,seq={id}", "color=",
    "bad key=x", "color in ()", "a=b=c",
)  # fmt: skip
MERGE, STRATEGIC, JSON = (f"application/{form}+json" for form in ("merge-patch", "strategic-merge-patch", "json-patch"))


def sequence(seed: int, steps: int, subjects: list[Subject] = SUBJECTS) -> list[Step]:
    return _Generator(random.Random(seed), subjects).steps(steps)


class _Generator:
    def __init__(self, rng: random.Random, subjects: list[Subject]):
        self._rng = rng
        self._subjects = rng.sample(subjects, min(len(subjects), rng.choice((1, 2, 3))))
        self._generated: list[tuple[Subject, str, str]] = []
        self._tokens = 0
        self._listed: dict[str, tuple[Subject, str, dict[str, str]]] = {}

    def steps(self, count: int) -> list[Step]:
        kinds: list[tuple[Callable[[], Step], int]] = [
            (self._create, 20),
            (self._replace, 16),
            (self._patch, 24),
            (self._get, 6),
            (self._list, 8),
            (self._next_page, 4),
            (self._watch, 4),
            (self._delete, 12),
            (self._delete_collection, 2),
            (self._scale, 4),
        ]
        made, weights = zip(*kinds, strict=True)
        # Something to work on.
        return [self._create(), *(self._rng.choices(made, weights)[0]() for _ in range(count - 1))]

    # Where.

    def _subject(self) -> Subject:
        return self._rng.choice(self._subjects)

    def _place(self, subject: Subject) -> str:
        return collection(subject, self._rng.choices(namespaces(), (5, 1))[0])

    def _object(self, subject: Subject | None = None) -> tuple[Subject, str, str]:
        """A kind, the path of an object that may be there, and its name."""
        if self._generated and self._rng.random() < 0.15:
            return self._rng.choice(self._generated)
        subject = subject or self._subject()
        name = self._name(subject)
        return subject, f"{self._place(subject)}/{name}", name

    def _name(self, subject: Subject) -> str:
        name = self._rng.choice(_NAMES)
        return name if subject.namespaced else f"{name}-{{id}}"

    # What.

    def _new(self, subject: Subject, name: str) -> dict[str, Any]:
        content = copy.deepcopy(subject.content)
        metadata = {"name": name, "labels": {"seq": "{id}"}, **content.pop("metadata", {})}
        return {"apiVersion": subject.api_version, "kind": subject.kind, "metadata": metadata, **content}

    def _changes(self, subject: Subject, most: int, subresource: str = "") -> list[tuple[Path, Any]]:
        return [self._change(subject, subresource) for _ in range(self._rng.randint(0 if most > 1 else 1, most))]

    def _change(self, subject: Subject, subresource: str = "") -> tuple[Path, Any]:
        own: list[Tried] = subject.status if subresource == "status" else subject.changes
        other = COMMON if self._rng.random() < 0.35 or not own else own
        if subresource == "status" and self._rng.random() < 0.1:
            other = subject.changes
        if not subresource and subject.status and self._rng.random() < 0.05:
            other = subject.status
        path, values = self._rng.choice(other)
        return list(path), copy.deepcopy(self._rng.choice(values))

    def _write_query(self) -> dict[str, str]:
        query = {}
        if self._rng.random() < 0.08:
            query["dryRun"] = self._rng.choice(("All", "All", "Some"))
        if self._rng.random() < 0.15:
            query["fieldValidation"] = self._rng.choice(("Strict", "Warn", "Ignore", "Other"))
        return query

    # The steps.

    def _create(self) -> Step:
        subject = self._subject()
        name = self._name(subject)
        obj = self._new(subject, name)
        place = self._place(subject)
        if self._rng.random() < 0.12:
            self._tokens += 1
            prefix = f"g{self._tokens}-" if subject.namespaced else f"g{self._tokens}-{{id}}-"
            del obj["metadata"]["name"]
            obj["metadata"]["generateName"] = prefix
            self._generated.append((subject, f"{place}/<name {prefix}>", f"<name {prefix}>"))
        for path, value in self._changes(subject, 3) if self._rng.random() < 0.7 else ():
            change(obj, path, value)
        return Step(method="POST", path=place, query=self._write_query(), body=obj)

    def _replace(self) -> Step:
        subject, path, name = self._object()
        subresource = "status" if subject.status and self._rng.random() < 0.3 else ""
        changes: list[Any] = [[at, value] for at, value in self._changes(subject, 2, subresource)]
        stale = self._rng.random()
        if stale < 0.15:
            changes.append([["metadata", "resourceVersion"], f"<first {path}>"])
        elif stale < 0.35:
            changes.append([["metadata", "resourceVersion"], ABSENT])
        body = {"$of": path, "changes": changes, "else": self._new(subject, name)}
        path = f"{path}/{subresource}" if subresource else path
        return Step(method="PUT", path=path, query=self._write_query(), body=body)

    def _patch(self) -> Step:
        subject, path, _ = self._object()
        subresource = "status" if subject.status and self._rng.random() < 0.3 else ""
        forms = [MERGE, JSON] + ([STRATEGIC] * 2 if subject.strategic or self._rng.random() < 0.1 else [])
        form = self._rng.choice(forms)
        changes = self._changes(subject, 2, subresource) or [self._change(subject, subresource)]
        if self._rng.random() < 0.1:
            version = self._rng.choice((f"<rv {path}>", f"<first {path}>"))
            changes.append((["metadata", "resourceVersion"], version))
        body = self._operations(changes) if form == JSON else self._merged(changes, form)
        path = f"{path}/{subresource}" if subresource else path
        return Step(method="PATCH", path=path, query=self._write_query(), type=form, body=body)

    def _merged(self, changes: list[tuple[Path, Any]], form: str) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for path, value in changes:
            if path[0] in ("kind", "apiVersion") and value in (ABSENT, "") and form == MERGE:
                continue
            change(body, path, None if value == ABSENT else value)
        if form == STRATEGIC and self._rng.random() < 0.15:
            extra: Any
            at, extra = self._rng.choice((
                (["metadata", "$deleteFromPrimitiveList/finalizers"], ["example.com/hold"]),
                (["metadata", "finalizers"], ["example.com/two"]),
                (["metadata", "$setElementOrder/finalizers"], ["example.com/two", "example.com/hold"]),
                (["metadata", "labels", "$patch"], "replace"),
                (["metadata", "labels", "$patch"], "delete"),
                (["metadata", "labels", "$retainKeys"], ["seq"]),
                (["spec", "template", "spec", "containers"], [{"name": "a", "$patch": "delete"}]),
                (["spec", "template", "spec", "containers"], [{"name": "b", "image": "z"}, {"$patch": "replace"}]),
                (["spec", "strategy", "$retainKeys"], ["type"]),
                (["spec", "ports"], [{"port": 81, "name": "more"}]),
                (["spec", "ports"], [{"port": 80, "$patch": "delete"}]),
                (["metadata", "labels", "$patch"], "nonsense"),
            ))  # fmt: skip
            change(body, at, extra)
        return body

    def _operations(self, changes: list[tuple[Path, Any]]) -> list[dict[str, Any]]:
        operations: list[dict[str, Any]] = []
        for path, value in changes:
            if path[0] in ("kind", "apiVersion"):
                continue  # Kubernetes goes on with whatever such a patch leaves, as an object of no kind
            pointer = "".join(f"/{_pointed(part)}" for part in path)
            if value == ABSENT:
                operations.append({"op": "remove", "path": pointer})
            else:
                operations.append({"op": self._rng.choice(("add", "add", "replace")), "path": pointer, "value": value})
        if self._rng.random() < 0.2:
            operations.insert(self._rng.randint(0, 1), self._rng.choice((
                {"op": "test", "path": "/metadata/labels/color", "value": "red"},
                {"op": "test", "path": "/metadata/labels/seq", "value": "{id}"},
                {"op": "remove", "path": "/metadata/labels/color"},
                {"op": "remove", "path": "/metadata/finalizers"},
                {"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"},
                {"op": "move", "from": "/metadata/labels/color", "path": "/metadata/labels/moved"},
                {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/hold"},
                {"op": "nonsense", "path": "/x"},
                {"op": "add", "path": "metadata", "value": {}},
                {"op": "add", "path": "/metadata/labels/a~1b", "value": "x"},
                {"op": "remove", "path": "/metadata"},
                {"op": "replace", "path": "", "value": {}},
            )))  # fmt: skip
        return operations

    def _get(self) -> Step:
        _, path, _ = self._object()
        if self._rng.random() < 0.2:
            path = f"{path}/{self._rng.choice(('status', 'scale', 'nonsense'))}"
        query = {}
        if self._rng.random() < 0.1:
            query["resourceVersion"] = self._rng.choice((f"<rv {path}>", "x"))
        return Step(method="GET", path=path, query=query)

    def _selection(self, subject: Subject) -> tuple[str, dict[str, str]]:
        """A collection, and what selects from it objects of this sequence alone."""
        query: dict[str, str] = {}
        path = self._place(subject)
        everywhere = not subject.namespaced or self._rng.random() < 0.2
        if everywhere:
            path = f"{subject.api}/{subject.plural}"
            query["labelSelector"] = self._rng.choice(("seq={id}", "seq={id}", "seq={id},color=red", "color,seq={id}"))
        elif self._rng.random() < 0.5:
            query["labelSelector"] = self._rng.choice(_SELECTORS)
        if self._rng.random() < 0.25:
            field = self._rng.choice(("metadata.name", "metadata.namespace", *subject.fields * 2, "spec.nonsense"))
            value = self._rng.choice((self._name(subject), "seq-{id}-a", "red", "Running", "Opaque", "", "0"))
            query["fieldSelector"] = f"{field}{self._rng.choice(('=', '!=', '=='))}{value}"
        return path, query

    def _list(self) -> Step:
        subject = self._subject()
        path, query = self._selection(subject)
        # What is left behind a page is known only where nobody else writes.
        if "namespaces" in path and self._rng.random() < 0.4:
            query["limit"] = self._rng.choice(("1", "2", "3", "0", "-1", "x"))
            self._tokens += 1
            self._listed[f"t{self._tokens}"] = subject, path, query
            return Step(method="GET", path=path, query=query, keep=f"t{self._tokens}")
        if self._rng.random() < 0.2:
            _, known, _ = self._object(subject)
            query["resourceVersion"] = f"<rv {known}>"
            match = self._rng.choice(("", "Exact", "NotOlderThan", "Other"))
            query |= {"resourceVersionMatch": match} if match else {}
        return Step(method="GET", path=path, query=query)

    def _next_page(self) -> Step:
        if not self._listed:
            return self._list()
        name = self._rng.choice(list(self._listed))
        subject, path, query = self._listed[name]
        query = {**query, "continue": f"<continue {name}>"}
        if self._rng.random() < 0.1:
            _, known, _ = self._object(subject)
            query["resourceVersion"] = f"<rv {known}>"
        return Step(method="GET", path=path, query=query, keep=name)

    def _watch(self) -> Step:
        subject = self._subject()
        path, query = self._selection(subject)
        query["watch"] = "true"
        start = self._rng.random()
        if start < 0.5:
            _, known, _ = self._object(subject)
            query["resourceVersion"] = f"<{self._rng.choice(('rv', 'first'))} {known}>"
        elif start < 0.7:
            query |= {
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "allowWatchBookmarks": "true",
            }
        return Step(method="GET", path=path, query=query, watch=True)

    def _delete(self) -> Step:
        subject, path, _ = self._object()
        options: dict[str, Any] = {}
        settle = ""
        if self._rng.random() < 0.3:
            options["preconditions"] = self._rng.choice((
                {"uid": f"<uid {path}>"},
                {"resourceVersion": f"<rv {path}>"},
                {"resourceVersion": f"<first {path}>"},
                {"uid": "11111111-2222-4333-8444-555555555555"},
                {"uid": f"<uid {path}>", "resourceVersion": "1"},
            ))  # fmt: skip
        if self._rng.random() < 0.25:
            options["propagationPolicy"] = self._rng.choice(("Background", "Foreground", "Orphan", "Other"))
        if options.get("propagationPolicy") in ("Foreground", "Orphan") or subject.plural == "jobs":
            settle = path
        if self._rng.random() < 0.15:
            options["gracePeriodSeconds"] = self._rng.choice((0, 5, -1, 30))
        if self._rng.random() < 0.06:
            options["dryRun"] = ["All"]
        if self._rng.random() < 0.04:
            options["orphanDependents"] = False
        return Step(method="DELETE", path=path, body=options or None, settle=settle)

    def _delete_collection(self) -> Step:
        subject = self._subject()
        path, query = self._selection(subject)
        if subject.namespaced and "namespaces" not in path:
            path = self._place(subject)
        # Never what the namespace's own controllers would make again.
        query["labelSelector"] = self._rng.choice(("seq={id}", "seq={id},color=red", "seq={id},color!=red"))
        return Step(method="DELETE", path=path, query=query, body={"propagationPolicy": "Background"})

    def _scale(self) -> Step:
        _, path, name = self._object()
        value = self._rng.choice((0, 2, 5, -1, "x", None))
        if self._rng.random() < 0.5:
            body: Any = {"spec": {"replicas": value}}
            return Step(method="PATCH", path=f"{path}/scale", type=MERGE, body=body)
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": path.partition("/namespaces/")[2].partition("/")[0]},
            "spec": {"replicas": value},
        }
        if self._rng.random() < 0.3:
            body["metadata"]["resourceVersion"] = self._rng.choice((f"<rv {path}>", f"<first {path}>"))
        return Step(method="PUT", path=f"{path}/scale", body=body)


def _pointed(part: Any) -> str:
    if isinstance(part, dict):
        return "0"
    return str(part).replace("~", "~0").replace("/", "~1")
