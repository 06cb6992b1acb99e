import copy
from typing import Any

import pytest

from argosy.kube import schema, typecheck
from argosy.kube.schema import SchemaError, load, minors
from argosy.kube.typecheck import check, strict_error


def deployment() -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": "nginx",
                            "ports": [{"containerPort": 80}],
                            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
                        }
                    ]
                },
            },
        },
    }


def of_kind(group: str, version: str, kind: str) -> schema.Type:
    found = load().kind(group, version, kind)
    assert found is not None
    return found


DEPLOYMENT = of_kind("apps", "v1", "Deployment")


def set_at(obj: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    node: Any = obj
    for key in path[:-1]:
        node = node[key] if isinstance(key, int) else node.setdefault(key, {})
    node[path[-1]] = value
    return obj


def test_right_object_is_left_as_it_is() -> None:
    obj = deployment()
    assert check(DEPLOYMENT, obj) == typecheck.Checked()
    assert obj == deployment()


def test_unknown_fields_are_named_by_path_and_removed() -> None:
    obj = deployment()
    obj["spec"]["foo"] = 1
    obj["spec"]["template"]["spec"]["containers"][0]["imagge"] = "x"
    checked = check(DEPLOYMENT, obj)
    assert checked.unknown == ("spec.template.spec.containers[0].imagge", "spec.foo")
    assert obj == deployment()
    assert strict_error(checked.unknown) == (
        'strict decoding error: unknown field "spec.template.spec.containers[0].imagge", unknown field "spec.foo"'
    )


CONTAINER = ["spec", "template", "spec", "containers", 0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["metadata", "labels", "app"], 1, "number into Go struct field ObjectMeta.metadata.labels of type string"),
        (["spec", "replicas"], "x", "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (["spec", "replicas"], 1.5, "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (["spec", "replicas"], 1.0, "number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            ["spec", "replicas"],
            99999999999,
            "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (["spec", "replicas"], True, "bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (["spec", "paused"], 1, "number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            ["spec", "selector"],
            "a",
            "string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
        ),
        (["spec", "selector"], [], "array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector"),
        (
            CONTAINER[:-1],
            {},
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            [*CONTAINER, "name"],
            1,
            "number into Go struct field Container.spec.template.spec.containers.name of type string",
        ),
        (CONTAINER, "a", "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container"),
        (
            [*CONTAINER, "command"],
            "x",
            "string into Go struct field Container.spec.template.spec.containers.command of type []string",
        ),
        (
            [*CONTAINER, "command"],
            [1],
            "number into Go struct field Container.spec.template.spec.containers.command of type string",
        ),
        (["metadata"], [], "array into Go struct field Deployment.metadata of type v1.ObjectMeta"),
        (["metadata", "labels"], [], "array into Go struct field ObjectMeta.metadata.labels of type map[string]string"),
        (
            ["metadata", "creationTimestamp"],
            1,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            ["spec", "strategy", "rollingUpdate", "maxSurge"],
            True,
            "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
    ],
)
def test_wrong_type_is_told_as_kube_apiserver_tells_it(path: list[Any], value: Any, message: str) -> None:
    checked = check(DEPLOYMENT, set_at(deployment(), path, value))
    assert checked.mistyped == (f"json: cannot unmarshal {message}",)


def test_values_a_decoder_reads_itself_have_their_own_messages() -> None:
    obj = deployment()
    obj["metadata"]["creationTimestamp"] = "x"
    obj["spec"]["replicas"] = "many"
    assert check(DEPLOYMENT, obj).mistyped == (
        'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    )
    obj = deployment()
    obj["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"
    assert check(DEPLOYMENT, obj).mistyped == (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    )
    secret = {"data": {"a": "!!"}}
    assert check(of_kind("", "v1", "Secret"), secret).mistyped == ("illegal base64 data at input byte 0",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("YWJjZA", "illegal base64 data at input byte 4"),
        ("YWJjZA=!", "illegal base64 data at input byte 6"),
        ("YWJj=ZA=", "illegal base64 data at input byte 4"),
        ("é", "illegal base64 data at input byte 0"),
    ],
)
def test_base64_is_refused_where_go_stops_reading(text: str, message: str) -> None:
    assert check(of_kind("", "v1", "Secret"), {"data": {"a": text}}).mistyped == (message,)


def test_line_breaks_inside_base64_are_joined() -> None:
    secret = {"data": {"a": "YWJj\nZA==", "b": ""}}
    assert check(of_kind("", "v1", "Secret"), secret) == typecheck.Checked()
    assert secret == {"data": {"a": "YWJjZA==", "b": ""}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2024-13-06T07:08:09Z", "month out of range"),
        ("2024-02-31T07:08:09Z", "day out of range"),
        ("2024-02-01T25:08:09Z", "hour out of range"),
    ],
)
def test_times_no_calendar_has_are_refused(text: str, message: str) -> None:
    obj = {"metadata": {"creationTimestamp": text}}
    assert check(DEPLOYMENT, obj).mistyped == (f'parsing time "{text}": {message}',)


def test_time_without_a_zone_is_refused() -> None:
    text = "2024-12-06T07:08:09"
    assert check(DEPLOYMENT, {"metadata": {"creationTimestamp": text}}).mistyped == (
        f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
    )


def test_nulls_go_and_quantities_and_times_become_canonical() -> None:
    obj = deployment()
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"] = {"cpu": 0.5, "memory": "1024Mi", "storage": None}
    container["args"] = ["a", None]
    obj["metadata"]["annotations"] = None
    obj["metadata"]["creationTimestamp"] = "2024-05-06T07:08:09.5+02:00"
    assert check(DEPLOYMENT, obj) == typecheck.Checked()
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi", "storage": "0"}
    assert container["args"] == ["a", ""]
    assert obj["metadata"] == {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2024-05-06T05:08:09Z"}
    lease: dict[str, Any] = {"spec": {"renewTime": "2024-05-06T07:08:09.000001+02:00"}}
    assert check(of_kind("coordination.k8s.io", "v1", "Lease"), lease) == typecheck.Checked()
    assert lease == {"spec": {"renewTime": "2024-05-06T05:08:09.000001Z"}}


def test_a_micro_time_has_six_digits() -> None:
    lease = {"spec": {"renewTime": "2024-05-06T07:08:09Z"}}
    (found,) = check(of_kind("coordination.k8s.io", "v1", "Lease"), lease).mistyped
    assert 'cannot parse "Z" as ".000000"' in found


def test_free_form_fields_are_left_alone() -> None:
    crd = {
        "spec": {
            "versions": [
                {
                    "name": "v1",
                    "schema": {"openAPIV3Schema": {"properties": {"a": {"default": {"x": None}, "enum": [None, 1]}}}},
                }
            ]
        }
    }
    before = copy.deepcopy(crd)
    assert check(of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), crd) == typecheck.Checked()
    assert crd == before


def test_types_know_merge_keys_list_types_and_required_fields() -> None:
    pod_spec = of_kind("", "v1", "Pod").fields["spec"]
    containers = pod_spec.fields["containers"]
    assert (containers.kind, containers.merge_key, containers.strategies) == ("array", "name", {"merge"})
    assert (containers.list_type, containers.list_map_keys) == ("map", ("name",))
    assert pod_spec.required == {"containers"}
    assert containers.item is not None
    assert containers.item.required == {"name"}
    assert pod_spec.fields["volumes"].strategies == {"merge", "retainKeys"}
    assert of_kind("", "v1", "Pod").fields["metadata"].fields["finalizers"].strategies == {"merge"}
    assert DEPLOYMENT.fields["spec"].fields["strategy"].strategies == {"retainKeys"}


def test_every_kind_of_every_minor_can_be_walked() -> None:
    assert len(minors()) >= 4
    for minor in minors():
        schemas = load(minor)
        seen: set[str] = set()
        for group, version, kind in schemas.kinds():
            stack = [schemas.kind(group, version, kind)]
            while stack:
                node = stack.pop()
                assert node is not None
                if node.definition:
                    if node.definition in seen:
                        continue
                    seen.add(node.definition)
                stack += [*node.fields.values(), *([node.item] if node.item else [])]
        assert "io.k8s.api.core.v1.Container" in seen


def test_openapi_definitions_come_back_with_descriptions_and_extensions() -> None:
    definitions = load().definitions("#/components/schemas/")
    found = definitions["io.k8s.api.apps.v1.DeploymentSpec"]
    assert found["properties"]["template"]["$ref"] == "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"
    assert found["properties"]["strategy"]["x-kubernetes-patch-strategy"] == "retainKeys"
    assert found["required"] == ["selector", "template"]
    assert "strategy" in found["properties"]["strategy"]["description"]
    assert definitions["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"] == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]
    assert DEPLOYMENT.fields["spec"].fields["replicas"].description.startswith("Number of desired pods")


def test_unknown_minor_is_refused_with_those_there_are() -> None:
    with pytest.raises(SchemaError, match=r"1\.36"):
        load("1.2")
    with pytest.raises(SchemaError):
        load("../../x")
    assert load().kind("apps", "v1", "Nothing") is None
