"""Requests that take long to compute: some forty, over every verb and content type. One a line of the table they give."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from tests.harness.definitions import large_definition

__all__ = ["Case", "cases"]

MAPS = "/api/v1/namespaces/default/configmaps"
MANY = "/api/v1/namespaces/many/configmaps"
HEAVY = "/api/v1/namespaces/heavy/configmaps"
#: Objects of 1 MB there.
HEAVIES = 12
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LARGES = "/apis/large.example.com/v1/namespaces/default/larges"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#: May do in their namespace what its administrators may.
TENANT = "tenant"
MOST = 3 * 1024 * 1024 - 1024


class Case(NamedTuple):
    """`codes` are the answers that are right."""

    name: str
    method: str
    path: str
    body: bytes = b""
    content: str = JSON
    accept: str = JSON
    codes: tuple[int, ...] = (200, 201)
    #: Events of a watch that are read before it is left.
    events: int = 0
    #: Who asks, where that is not the administrator.
    user: str = ""


def cases() -> list[Case]:
    return [*_reads(), *_config_maps(), *_broken(), *_definitions(), *_custom(), *_workloads(), *_access()]


def named(kind: str, name: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _reads() -> Iterator[Case]:
    for shape, accept in (
        ("json", JSON),
        ("yaml", YAML),
        ("table", TABLE),
        ("partial", PARTIAL),
        ("table, yaml", f"{YAML};as=Table;v=v1;g=meta.k8s.io"),
    ):
        yield Case(f"list of many, {shape}", "GET", MANY, accept=accept)
    labels = ",".join(f"!never{n}" for n in range(900))
    yield Case("list by many labels", "GET", f"{MANY}?labelSelector={labels}")
    yield Case(
        "list by far too many labels",
        "GET",
        f"{MANY}?labelSelector={','.join(f'!l{n}' for n in range(8000))}",
        codes=(400,),
    )
    yield Case("list by a long set", "GET", f"{MANY}?labelSelector=number+in+({','.join(map(str, range(9000)))})")
    yield Case("a query too long", "GET", f"{MANY}?labelSelector={'a' * 200_000}", codes=(431,))
    yield Case("list at a version", "GET", f"{MANY}?resourceVersion=12000&resourceVersionMatch=Exact", codes=(200,))
    for shape, accept in (("json", JSON), ("table", TABLE), ("partial", PARTIAL)):
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        yield Case(f"watch of many, {shape}", "GET", f"{MANY}?{query}", accept=accept, events=20_000)
        yield Case(f"watch of large ones, {shape}", "GET", f"{HEAVY}?{query}", accept=accept, events=HEAVIES)
    yield Case("watch of some among many", "GET", f"{MANY}?watch=true&labelSelector=number=7", events=200)
    yield Case("delete a collection", "DELETE", "/api/v1/namespaces/doomed/configmaps")
    yield Case("metrics", "GET", "/metrics", accept="text/plain")
    yield Case(
        "discovery", "GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    yield Case("openapi v2", "GET", "/openapi/v2")
    yield Case("openapi v2, protobuf", "GET", "/openapi/v2", accept=PROTOBUF)
    yield Case("openapi v3", "GET", "/openapi/v3")
    yield Case("openapi v3, one group", "GET", "/openapi/v3/apis/large.example.com/v1")


def _config_maps() -> Iterator[Case]:
    keys = {f"k{n}": "" for n in range(200_000)}
    body = orjson.dumps(named("ConfigMap", "keys", data=keys))
    yield Case("200,000 keys", "POST", MAPS, body)
    yield Case("200,000 keys, yaml", "POST", MAPS, orjson.dumps(named("ConfigMap", "yaml", data=keys)), YAML)
    block = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: block\ndata:\n"
    yield Case(
        "60,000 keys, block yaml", "POST", MAPS, block + b"".join(b"  k%d: 12:30:59\n" % n for n in range(60_000)), YAML
    )
    yield Case("200,000 keys, put", "PUT", f"{MAPS}/small", orjson.dumps(named("ConfigMap", "small", data=keys)))
    yield Case("200,000 keys, merge patch", "PATCH", f"{MAPS}/small", orjson.dumps({"data": keys}), MERGE)
    yield Case("200,000 keys, strategic patch", "PATCH", f"{MAPS}/small", orjson.dumps({"data": keys}), STRATEGIC)
    yield Case("200,000 keys, dry run", "POST", f"{MAPS}?dryRun=All", body, codes=(201, 409))
    yield Case("200,000 unknown fields", "POST", MAPS, orjson.dumps({**named("ConfigMap", "unknown"), **keys}))
    yield Case(
        "200,000 unknown fields, strict",
        "POST",
        f"{MAPS}?fieldValidation=Strict",
        orjson.dumps({**named("ConfigMap", "strict"), **keys}),
        codes=(400,),
    )
    yield Case(
        "200,000 labels",
        "POST",
        MAPS,
        orjson.dumps({**named("ConfigMap", "l"), "metadata": {"name": "l", "labels": keys}}),
        codes=(422,),
    )
    yield Case(
        "200,000 wrong labels",
        "POST",
        MAPS,
        orjson.dumps({**named("ConfigMap", "w"), "metadata": {"name": "w", "labels": {f"-{k}": "-" for k in keys}}}),
        codes=(422,),
    )
    for count, code in ((5_000, 201), (30_000, 422)):
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": f"u{n}"} for n in range(count)]
        body = {**named("ConfigMap", "owned"), "metadata": {"name": "owned", "ownerReferences": owners}}
        yield Case(f"{count:,} owners", "POST", MAPS, orjson.dumps(body), codes=(code,))
    text = named("ConfigMap", "text", data={"text": '\n"' * 450_000})
    yield Case("one long text", "POST", MAPS, orjson.dumps(text))
    copies = [{"op": "copy", "from": "/data", "path": f"/x{n}"} for n in range(2_000)]
    yield Case("a patch of copies", "PATCH", f"{MAPS}/small", orjson.dumps(copies), PATCH, codes=(200, 413, 422))
    tests = [{"op": "test", "path": "/data/a", "value": "b"}] * 10_000
    yield Case("a patch of 10,000 tests", "PATCH", f"{MAPS}/small", orjson.dumps(tests), PATCH, codes=(200, 413, 422))
    yield Case(
        "large options of a delete",
        "DELETE",
        f"{MAPS}/none",
        orjson.dumps({"kind": "DeleteOptions", "dryRun": ["All"] * 300_000}),
        codes=(404,),
    )


def _broken() -> Iterator[Case]:
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":'
    yield Case(
        "objects in objects",
        "POST",
        MAPS,
        head + b"[" + b",".join([b'{"a":{}}'] * (MOST // 9 - 50)) + b"]}",
        codes=(400,),
    )
    yield Case("empty arrays", "POST", MAPS, head + b"[" + b",".join([b"[]"] * (MOST // 3 - 50)) + b"]}", codes=(400,))
    yield Case("numbers", "POST", MAPS, head + b"[" + b",".join([b"1"] * (MOST // 2 - 50)) + b"]}", codes=(400, 413))
    yield Case("a field many times", "POST", MAPS, head + b"{" + b",".join([b'"a":""'] * (MOST // 7 - 50)) + b"}}")
    yield Case(
        "broken at the end", "POST", MAPS, head + orjson.dumps({f"k{n}": "" for n in range(200_000)}), codes=(400,)
    )
    yield Case("deep", "POST", MAPS, head + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}", codes=(400,))
    yield Case("sexagesimal yaml", "POST", MAPS, b"a: " + b"1:" * 180_000 + b"1", YAML, codes=(422,))
    yield Case("flow yaml", "POST", MAPS, b"a: [" + b"[],{}," * 150_000 + b"]", YAML, codes=(400,))


def _definitions() -> Iterator[Case]:
    for number, (name, kind) in enumerate((("first", JSON), ("second", YAML))):
        made = large_definition(name, 1_200_000, versions=1 + number * 2)
        yield Case(f"a definition of 1.2 MB, {kind}", "POST", DEFINITIONS, orjson.dumps(made), kind)
    note = {"metadata": {"annotations": {"a": "b"}}}
    path = f"{DEFINITIONS}/larges.large.example.com"
    yield Case("an annotation of a large definition", "PATCH", path, orjson.dumps(note), MERGE)
    yield Case("the status of a large definition", "PATCH", f"{path}/status", orjson.dumps({"status": {"x": 1}}), MERGE)
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30_000)}}
    crd = large_definition("wide", 1000)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema
    yield Case("a wide definition", "POST", DEFINITIONS, orjson.dumps(crd))
    crd = large_definition("wrong", 1000)
    wrong = {"type": "object", "properties": {f"p{n}": {} for n in range(30_000)}}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = wrong
    yield Case("a definition with 30,000 mistakes", "POST", DEFINITIONS, orjson.dumps(crd), codes=(422,))


def _custom() -> Iterator[Case]:
    def body(name: str, spec: Any) -> bytes:
        return orjson.dumps(named("Large", name, "large.example.com/v1", spec=spec))

    free = {f"k{n}": {"a": [n, float(n)], "b": "text"} for n in range(40_000)}
    yield Case("a custom object", "POST", LARGES, body("free", {"free": free}))
    yield Case("a custom object, put", "POST", f"{LARGES}?dryRun=All", body("free-2", {"free": free}), accept=YAML)
    yield Case(
        "unknown fields of a custom object", "POST", LARGES, body("unknown", {f"u{n}": 1 for n in range(150_000)})
    )
    yield Case("mistakes in a custom object", "POST", LARGES, body("wrong", {"text": [1] * 300_000}), codes=(422,))
    yield Case(
        "a custom object, merge patch",
        "PATCH",
        f"{LARGES}/stored",
        orjson.dumps({"spec": {"free": {"more": free}}}),
        MERGE,
    )
    yield Case(
        "a custom object, json patch",
        "PATCH",
        f"{LARGES}/stored",
        orjson.dumps([{"op": "add", "path": "/spec/text", "value": "t"}]),
        PATCH,
    )
    yield Case(
        "the status of a custom object",
        "PATCH",
        f"{LARGES}/stored/status",
        orjson.dumps({"status": {"x": free}}),
        MERGE,
    )
    for shape, accept in (("yaml", YAML), ("table", TABLE)):
        yield Case(f"a large custom object, {shape}", "GET", f"{LARGES}/stored", accept=accept)
        yield Case(f"custom objects, {shape}", "GET", LARGES, accept=accept)


def _workloads() -> Iterator[Case]:
    def deployment(name: str, **pod: Any) -> bytes:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        return orjson.dumps(named("Deployment", name, "apps/v1", spec=spec))

    path = "/apis/apps/v1/namespaces/default/deployments"
    env = [{"name": f"E{n}", "value": "v"} for n in range(40_000)]
    yield Case(
        "a pod with 40,000 variables",
        "POST",
        path,
        deployment("env", containers=[{"name": "c", "image": "i", "env": env}]),
    )
    many = [{"name": f"c{n}", "image": "i"} for n in range(15_000)]
    yield Case("15,000 containers", "POST", path, deployment("many", containers=many))
    yield Case(
        "a strategic patch of containers",
        "PATCH",
        f"{path}/web",
        orjson.dumps({"spec": {"template": {"spec": {"containers": many}}}}),
        STRATEGIC,
    )
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(20_000)]
    yield Case("20,000 volumes", "POST", path, deployment("volumes", containers=many[:1], volumes=volumes))
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(40_000)]
    yield Case("40,000 tolerations", "POST", path, deployment("tolerant", containers=many[:1], tolerations=tolerations))
    scale = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "annotations": {f"k{n}": "" for n in range(100_000)}},
        "spec": {"replicas": 1},
    }
    yield Case("a large scale", "PUT", f"{path}/web/scale", orjson.dumps(scale), codes=(200, 422))
    for count, code in ((5_000, 201), (40_000, 422)):
        ports = [{"name": f"p{n}", "port": 1 + n} for n in range(count)]
        service = named("Service", f"ports-{count}", spec={"ports": ports, "selector": {"a": "b"}})
        path = "/api/v1/namespaces/default/services"
        yield Case(f"{count:,} ports", "POST", path, orjson.dumps(service), codes=(code,))
    rules = [{"host": f"h{n}.example.com"} for n in range(40_000)]
    ingress = named("Ingress", "rules", "networking.k8s.io/v1", spec={"rules": rules})
    yield Case(
        "40,000 rules",
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        orjson.dumps(ingress),
        codes=(201, 422),
    )


def _access() -> Iterator[Case]:
    version = "rbac.authorization.k8s.io/v1"
    reference = {"kind": "Role", "name": "any", "apiGroup": "rbac.authorization.k8s.io"}
    for count, code in ((5_000, 201), (30_000, 422)):
        rules = [{"apiGroups": [""], "resources": [f"r{n}"], "verbs": ["get"]} for n in range(count)]
        role = named("Role", "rules", version, rules=rules)
        path = f"{RBAC}/namespaces/default"
        yield Case(f"{count:,} rules of a role", "POST", f"{path}/roles", orjson.dumps(role), codes=(code,))
        subjects = [{"kind": "User", "name": f"u{n}", "apiGroup": "rbac.authorization.k8s.io"} for n in range(count)]
        binding = named("RoleBinding", "subjects", version, subjects=subjects, roleRef=reference)
        yield Case(f"{count:,} subjects", "POST", f"{path}/rolebindings", orjson.dumps(binding), codes=(code,))
    yield from _roles()
    review = {
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {
            "user": "u",
            "groups": [f"g{n}" for n in range(200_000)],
            "resourceAttributes": {"verb": "get", "resource": "pods"},
        },
    }
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    yield Case("a review of 200,000 groups", "POST", reviews, orjson.dumps(review), codes=(422,))
    token = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": {"audiences": [f"a{n}" for n in range(200_000)]},
    }
    yield Case(
        "a token for 200,000",
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        orjson.dumps(token),
        codes=(201, 422),
    )


def _roles() -> Iterator[Case]:
    """Of what one rule, or a few, name: of a tenant, whose rights are compared with it."""

    def role(name: str, *rules: dict[str, Any]) -> bytes:
        return orjson.dumps(named("Role", name, "rbac.authorization.k8s.io/v1", rules=list(rules)))

    def rule(verbs: list[str], *resources: str, **more: list[str]) -> dict[str, Any]:
        return {"apiGroups": [""], "resources": list(resources), "verbs": verbs, **more}

    def post(name: str, *rules: dict[str, Any], code: int) -> Case:
        path = f"{RBAC}/namespaces/default/roles"
        return Case(f"a role of {name}", "POST", path, role(name.replace(" ", "-"), *rules), codes=(code,), user=TENANT)

    numbers = [str(number) for number in range(49_000)]
    yield post("400000 verbs", rule(["get"] * 400_000, "configmaps"), code=422)
    yield post("49000 verbs", rule(["get"] * 49_000, "configmaps"), code=201)
    yield post("49000 names", rule(["get"], "configmaps", resourceNames=numbers), code=201)
    for count, code in ((1000, 201), (4900, 403)):
        some = (rule(["get"], "pods", resourceNames=numbers[n : n + 7]) for n in range(count))
        yield post(f"{count} rules", *some, code=code)
    yield post("49000 verbs not held", rule(numbers, "configmaps"), code=403)
    yield post("49000 resources not held", rule(["get"], *numbers), code=403)
    yield post("5000 rules not held", *(rule(["get"], name) for name in numbers[:5000]), code=403)
    yield post("many verbs of many resources", rule(numbers[:200], *numbers[:5000]), code=403)
    yield post("billions of permissions", rule(numbers[:9000], *numbers[:9000], resourceNames=numbers[:9000]), code=403)
    path = f"{RBAC}/namespaces/default/roles/names"
    label = orjson.dumps({"metadata": {"labels": {"a": "b"}}})
    yield Case("a label of a large role", "PATCH", path, label, MERGE, user=TENANT)
    yield Case(
        "a large role, put", "PUT", path, role("names", rule(["list"], "pods", resourceNames=numbers)), user=TENANT
    )
    reference = {"kind": "Role", "name": "names", "apiGroup": "rbac.authorization.k8s.io"}
    subjects = [{"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = named("RoleBinding", "names", "rbac.authorization.k8s.io/v1", subjects=subjects, roleRef=reference)
    yield Case(
        "a large role, bound",
        "POST",
        f"{path.rpartition('/roles')[0]}/rolebindings",
        orjson.dumps(binding),
        user=TENANT,
    )
    asked = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": "default"},
    }
    yield Case(
        "the rights of who has large roles",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        orjson.dumps(asked),
        user=TENANT,
    )
    yield Case(
        "a small read of who has large roles", "GET", "/api/v1/namespaces/default/pods/none", codes=(404,), user=TENANT
    )
