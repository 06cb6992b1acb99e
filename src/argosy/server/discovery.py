"""Discovery: which groups, versions and resources are served, in the legacy form and in the aggregated one.

Responses are made from the registry and cached until its generation changes. Groups come in kube-apiserver's order, custom
ones after the built-in ones by name; versions by Kubernetes' own ranking (v2, v1, v1beta1, …).
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from argosy.kube.transport import Request, Response
from argosy.server.auth.identity import User
from argosy.server.http.accept import media_types
from argosy.server.registry import Kind, Registry

__all__ = ["SUBRESOURCE_KINDS", "SUBRESOURCE_VERBS", "Discovery", "group_order", "version_rank"]

_GROUPS = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
    "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")

_OTHER_PATHS = (
    "/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
)  # fmt: skip
#: Custom resources are listed with their verbs in this order, built-in ones alphabetically.
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_WRITABLE = ("get", "patch", "update")
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
SUBRESOURCE_VERBS: dict[str, tuple[str, ...]] = {
    "finalize": ("update",), "binding": ("create",), "eviction": ("create",), "token": ("create",), "log": ("get",),
    "exec": _STREAM, "attach": _STREAM, "portforward": _STREAM, "proxy": _PROXY,
}  # fmt: skip
#: Subresources of another kind: (group, version, kind). An empty version means the parent's own.
SUBRESOURCE_KINDS: dict[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "binding": ("", "", "Binding"),
    "exec": ("", "", "PodExecOptions"),
    "attach": ("", "", "PodAttachOptions"),
    "portforward": ("", "", "PodPortForwardOptions"),
}

_AGGREGATED = ("v2", "v2beta1")


def group_order(group: str) -> tuple[int, str]:
    """Sort key of groups."""
    return (_GROUPS.index(group), "") if group in _GROUPS else (len(_GROUPS), group)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sort key of versions, best first: stable before beta before alpha, newer before older, other names last."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), "")


class Discovery:
    """Answers GET of /, /api, /apis, /api/v1, /apis/G and /apis/G/V."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._generation = -1
        self._answers: dict[tuple[str, str], Response] = {}
        self._groups: dict[str, dict[str, list[Kind]]] = {}

    def respond(self, path: str, headers: Mapping[str, str]) -> Response | None:
        """None if the path is not one of discovery, or names a group or version that is not served."""
        parts = path.strip("/").split("/")
        if path == "/":
            self._refresh()
            return self._paths()
        if parts[0] not in ("api", "apis") or len(parts) > (2 if parts[0] == "api" else 3):
            return None
        self._refresh()
        if parts == ["api"] and not _aggregated_form(headers.get("accept", "")):
            return _json(self._api_versions(headers.get("host", "")))
        form = _aggregated_form(headers.get("accept", "")) if len(parts) == 1 else ""
        key = ("/".join(parts), form)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._aggregated(parts[0], form) if form else self._legacy(parts)
            if answer is None:
                return None
            self._answers[key] = answer
        etag = answer.headers.get("etag")
        if etag and etag in (tag.strip() for tag in headers.get("if-none-match", "").split(",")):
            kept = {name: answer.headers[name] for name in ("etag", "vary", "cache-control")}
            return Response(304, kept, b"")
        return answer

    async def answer(self, request: Request, user: User) -> Response | None:
        """The same for all clients."""
        return self.respond(request.path, request.headers)

    def _refresh(self) -> None:
        if self._generation == self._registry.generation:
            return
        self._generation = self._registry.generation
        self._answers.clear()
        groups: dict[str, dict[str, list[Kind]]] = {}
        for kind in sorted(self._registry, key=lambda k: k.plural):
            groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        self._groups = {
            group: dict(sorted(groups[group].items(), key=lambda item: version_rank(item[0])))
            for group in sorted(groups, key=group_order)
        }

    def _legacy(self, parts: list[str]) -> Response | None:
        root, *rest = parts
        if not rest:
            return _json(self._api_groups())
        group = "" if root == "api" else rest[0]
        versions = self._groups.get(group)
        if versions is None or (root == "apis" and not group):
            return None
        if root == "apis" and len(rest) == 1:
            return _json({"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)})
        version = rest[-1]
        if version not in versions:
            return None
        resources = [entry for kind in versions[version] for entry in _resources(kind)]
        named = f"{group}/{version}" if group else version
        head = {"kind": "APIResourceList", "apiVersion": "v1"} if group else {"kind": "APIResourceList"}
        return _json({**head, "groupVersion": named, "resources": resources})

    def _api_versions(self, host: str) -> dict[str, Any]:
        """With the address at which the client reached the server."""
        versions = list(self._groups.get("", {}))
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
        return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": addresses}

    def _paths(self) -> Response:
        """The index at `/`."""
        groups = [f"/apis/{group}" for group in self._groups if group]
        versions = [f"/apis/{group}/{version}" for group, found in self._groups.items() if group for version in found]
        core = [f"/api/{version}" for version in self._groups.get("", {})]
        return _json({"paths": sorted([*_OTHER_PATHS, *core, *groups, *versions])})

    def _api_groups(self) -> dict[str, Any]:
        groups = [_group(name, versions) for name, versions in self._groups.items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _aggregated(self, root: str, version: str) -> Response:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {"version": name, "resources": [_discovered(kind) for kind in kinds], "freshness": "Current"}
                    for name, kinds in versions.items()
                ],
            }
            for group, versions in self._groups.items()
            if bool(group) == (root == "apis")
        ]
        body = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }
        encoded = orjson.dumps(body)
        headers = {
            "content-type": f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList",
            "etag": f'"{hashlib.sha512(encoded).hexdigest().upper()}"',
            "vary": "Accept",
            "cache-control": "public",
        }
        return Response(200, headers, encoded)


def _aggregated_form(accept: str) -> str:
    """The version of the aggregated form that the client prefers; empty for the legacy form."""
    for media in media_types(accept):
        if media.type not in ("application/json", "*/*", "application/*"):
            continue
        kind, group, version = media.shape
        if not kind:
            return ""
        if kind == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io" and version in _AGGREGATED:
            return version
    return ""


def _json(body: dict[str, Any]) -> Response:
    return Response(200, {"content-type": "application/json", "vary": "Accept"}, orjson.dumps(body))


def _group(name: str, versions: Iterable[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _subresources(kind: Kind) -> list[tuple[str, tuple[str, str, str], list[str]]]:
    result = []
    # Both orders are kube-apiserver's.
    for name in sorted(kind.subresources, reverse=not kind.builtin):
        answers = SUBRESOURCE_KINDS.get(name) or ("", "", f"{kind.kind}ProxyOptions" if name == "proxy" else kind.kind)
        result.append((name, answers, list(SUBRESOURCE_VERBS.get(name, _WRITABLE))))
    return result


def _resources(kind: Kind) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    _add_names(main, kind)
    entries = [main]
    for name, (group, version, answers), verbs in _subresources(kind):
        other = {"group": group, "version": version} if version else {}
        entries.append(
            {
                "name": f"{kind.plural}/{name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                **other,
                "kind": answers,
                "verbs": verbs,
            }
        )
    return entries


def _verbs(kind: Kind) -> list[str]:
    return sorted(kind.verbs) if kind.builtin else [verb for verb in _CUSTOM_VERBS if verb in kind.verbs]


def _discovered(kind: Kind) -> dict[str, Any]:
    # kube-apiserver leaves out what is the same as the parent's, except for custom resources.
    own = {"group": "", "version": ""} if kind.builtin else {"group": kind.group, "version": kind.version}
    main: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {**own, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    _add_names(main, kind)
    subresources = []
    for name, (group, version, answers), verbs in _subresources(kind):
        answered = {**({"group": group, "version": version} if version else own), "kind": answers}
        subresources.append({"subresource": name, "responseKind": answered, "verbs": verbs})
    if subresources:
        main["subresources"] = subresources
    return main


def _add_names(entry: dict[str, Any], kind: Kind) -> None:
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
