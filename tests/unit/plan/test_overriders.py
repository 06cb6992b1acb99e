"""The overriders of a rule: what patches each makes, and what it refuses. The recorded vectors have many more cases."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.policies import OverridePolicy
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.fields import get
from argosy.plan.overriders.image_reference import ImageReference, ImageReferenceError, parse
from argosy.plan.overriders.rule import OVERRIDERS, rule_patches
from argosy.plan.pipeline.override import overrides
from argosy.plan.pipeline.template import template_of
from tests.unit.plan.worlds import cluster, deployment

EXAMPLES = Path(__file__).parents[3] / "examples"
DIGEST = "sha256:" + "a" * 64


def pods(*containers, **spec):
    return deployment(spec={"template": {"spec": {"containers": list(containers), **spec}}})


def container(name="web", **fields):
    return {"name": name, "image": "nginx:1", **fields}


def made(obj, **overriders):
    return rule_patches(overriders, obj)[0]


def after(obj, **overriders):
    return rule_patches(overriders, obj)[1]


def containers(obj):
    return get(obj, "spec.template.spec.containers")


def image(obj, *operations, **more):
    stated = [dict(zip(("imageComponent", "operator", "value"), each, strict=False)) for each in operations]
    return containers(after(obj, image=[{"operations": stated, **more}]))[0]["image"]


def test_overriders_apply_in_the_order_of_the_api():
    assert list(OVERRIDERS) == ["image", "command", "args", "envs", "annotations", "labels", "jsonpatch"]
    path = "/metadata/annotations/image"
    source = deployment(metadata={"annotations": {"image": "nginx:1"}})
    changed = after(
        source,
        jsonpatch=[{"path": path, "operator": "test", "value": "mirror.local/nginx:1"}],
        annotations=[{"operator": "addIfAbsent", "value": {"where": "here"}}],
        image=[{"imagePath": path, "operations": [{"imageComponent": "Registry", "value": "mirror.local"}]}],
    )
    assert changed["metadata"]["annotations"] == {"image": "mirror.local/nginx:1", "where": "here"}


@pytest.mark.parametrize(
    ("before", "operations", "expected"),
    [
        ("nginx:1", [("Registry", "overwrite", "mirror.local:5000")], "mirror.local:5000/nginx:1"),
        ("docker.io/team/app:1", [("Registry", "delete")], "team/app:1"),
        ("docker.io/team/app:1", [("Registry", "", "mirror.local")], "mirror.local/team/app:1"),
        ("team/app", [("Tag", "addIfAbsent", "2")], "team/app:2"),
        ("app:1", [("Tag", "delete"), ("Digest", "addIfAbsent", DIGEST)], f"app@{DIGEST}"),
        (f"app:1@{DIGEST}", [("Digest", "overwrite", ""), ("Tag", "overwrite", "2")], "app:2"),
        ("localhost/app", [("Repository", "overwrite", "team/other")], "localhost/team/other"),
    ],
)
def test_parts_of_an_image(before, operations, expected):
    assert image(pods(container(image=before)), *operations) == expected


@pytest.mark.parametrize(
    ("before", "operation", "why"),
    [
        ("app:1", ("Tag", "addIfAbsent", "2"), "addIfAbsent of the tag, but it has one"),
        ("app:1", ("Registry", "addIfAbsent"), "addIfAbsent of the registry needs a value"),
        ("app:1", ("Tag", "overwrite", "not a tag"), "the new value is no tag"),
        ("app:1", ("Digest", "overwrite", "sha256:short"), "the new value is no digest"),
        ("mirror.local/app:1", ("Repository", "delete"), "this is no image reference"),
        ("app:1", ("Registry", "overwrite", "no host/at all"), "this is no image reference"),
        ("App:1", ("Tag", "overwrite", "2"), "this is no image reference"),
        ("app:1", ("Colour", "overwrite", "2"), "unknown imageComponent 'Colour'"),
        ("app:1", ("Tag", "append", "2"), "unknown operator 'append'"),
    ],
)
def test_an_image_that_cannot_be_is_refused(before, operation, why):
    with pytest.raises(OverrideError, match=why):
        image(pods(container(image=before)), operation)


def test_images_of_all_containers_or_of_those_named():
    obj = pods(container(), container("side"), initContainers=[container("first")])
    stated = [{"operations": [{"imageComponent": "Tag", "value": "2"}]}]
    paths = [f"/spec/template/spec/{each}/image" for each in ("containers/0", "containers/1", "initContainers/0")]
    assert [patch["path"] for patch in made(obj, image=stated)] == paths
    named = [{**stated[0], "containerNames": ["first", "nobody"]}]
    assert made(obj, image=named) == [{"op": "replace", "path": paths[2], "value": "nginx:2"}]


@pytest.mark.parametrize(
    "path", ["spec/x", "/spec/nothing", "/spec/replicas", "/spec/template/spec/containers/x/image"]
)
def test_an_image_path_must_lead_to_a_text(path):
    with pytest.raises(OverrideError):
        made(deployment(), image=[{"imagePath": path, "operations": [{"imageComponent": "Tag", "value": "2"}]}])


def test_what_is_refused_does_not_tell_the_value():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "UEFTU1dPUkQ="}}
    with pytest.raises(OverrideError) as raised:
        made(secret, image=[{"imagePath": "/data/key", "operations": [{"imageComponent": "Tag", "value": "2"}]}])
    assert "UEFT" not in str(raised.value)


@pytest.mark.parametrize("field", ["command", "args"])
def test_command_and_args(field):
    obj = pods(container(**{field: ["a", "b", "a"]}), initContainers=[container("web", **{field: ["first"]})])
    path = f"/spec/template/spec/initContainers/0/{field}"

    def value(*changes):
        stated = [{"containerName": "web", "operator": operator, "value": value} for operator, value in changes]
        (patch,) = made(obj, **{field: stated})
        assert (patch["op"], patch["path"]) == ("replace", path), "init containers are searched first"
        return patch.get("value")

    assert value(("append", ["x"])) == ["first", "x"]
    assert value(("overwrite", ["x"])) == ["x"]
    assert value(("", ["x"])) == ["x"], "an empty operator overwrites"
    assert value(("append", ["x", "y"]), ("delete", ["first", "x"])) == ["y"]
    assert value(("delete", ["first"])) is None
    assert made(obj, **{field: [{"containerName": "nobody", "operator": "append", "value": ["x"]}]}) == []
    for wrong in ({"operator": "append", "value": []}, {"operator": "explode", "value": ["x"]}):
        with pytest.raises(OverrideError):
            made(obj, **{field: [{"containerName": "web", **wrong}]})


def test_environment_variables():
    env = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    obj = pods(container(env=env))

    def changed(operator, *variables):
        patches = made(obj, envs=[{"containerName": "web", "operator": operator, "value": list(variables)}])
        return patches[0].get("value")

    new = {"name": "C", "value": "3"}
    assert changed("addIfAbsent", new) == [*env, new]
    assert changed("overwrite", {"name": "A", "value": "2"}, new) == [{"name": "A", "value": "2"}, env[1]]
    assert changed("", {"name": "B", "value": "2"}) == [env[0], {"name": "B", "value": "2"}]
    assert changed("delete", {"name": "A"}) == [env[1]]
    assert changed("delete", {"name": "A"}, {"name": "B"}) is None
    for wrong in ([], [{"name": "A"}], [new, new]):
        with pytest.raises(OverrideError, match="addIfAbsent"):
            changed("addIfAbsent", *wrong)


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations(field):
    obj = deployment(metadata={field: {"a": "1", "b": "2"}})
    before = obj["metadata"][field]

    def changed(operator, **value):
        return after(obj, **{field: [{"operator": operator, "value": value}]})["metadata"][field]

    assert changed("addIfAbsent", c="3") == {**before, "c": "3"}
    assert changed("overwrite", a="9", c="3") == {**before, "a": "9"}
    assert changed("", a="9") == {**before, "a": "9"}
    assert changed("delete", a="") == {key: value for key, value in before.items() if key != "a"}
    for wrong in ({}, {"a": "1"}):
        with pytest.raises(OverrideError, match=f"addIfAbsent of {field}"):
            changed("addIfAbsent", **wrong)


@pytest.mark.parametrize("name", ["image", "command", "args", "envs"])
def test_a_kind_without_pods_says_so(name):
    stated = {
        "image": {"operations": [{"imageComponent": "Tag", "value": "2"}]},
        "command": {"containerName": "web", "value": ["x"]},
        "args": {"containerName": "web", "value": ["x"]},
        "envs": {"containerName": "web", "value": [{"name": "A"}]},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    with pytest.raises(OverrideError, match=f"{name}: a ConfigMap has no pod template"):
        made(config, **{name: [stated[name]]})


def test_what_a_patch_has_spoilt_is_refused_and_nothing_worse():
    spoilt = pods(container(env="x", args=[1]))
    for name, value in (("envs", [{"name": "A"}]), ("args", ["x"])):
        with pytest.raises(OverrideError, match="is not a list of the right form"):
            made(spoilt, **{name: [{"containerName": "web", "value": value}]})


# Image references.

LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True)
HOSTS = st.builds(
    lambda labels, port: ".".join(labels) + (f":{port}" if port else ""),
    st.lists(LABELS, min_size=2, max_size=3),
    st.none() | st.integers(1, 65535),
)
REPOSITORIES = st.lists(
    st.from_regex(r"[a-z0-9]{1,5}(([._]|__|-{1,2})[a-z0-9]{1,5}){0,2}", fullmatch=True), min_size=1, max_size=3
)
REFERENCES = st.builds(
    lambda registry, path, tag, digest: ImageReference(registry, "/".join(path), tag, digest),
    st.just("") | st.just("localhost") | HOSTS,
    REPOSITORIES,
    st.just("") | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}", fullmatch=True),
    st.just("") | st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True),
)


def is_host(text):
    return text == "localhost" or "." in text or ":" in text


@given(REFERENCES)
def test_a_reference_is_read_as_it_was_written(reference):
    first, slash, _ = reference.repository.partition("/")
    if not reference.registry and slash and is_host(first):
        return  # what looks like a host is the registry
    assert parse(str(reference)) == reference


@given(st.text(alphabet="aZ0./:@_- é\n", max_size=30))
def test_any_text_is_a_reference_that_is_written_back_or_is_refused(text):
    with suppress(ImageReferenceError):
        assert str(parse(text)) == text


@given(REFERENCES, st.sampled_from(["registry", "tag", "digest"]))
def test_a_part_that_is_removed_leaves_the_others(reference, part):
    changed = reference.having(part, "")
    assert [changed[at] for at, name in enumerate(ImageReference._fields) if name != part] == [
        value for value, name in zip(reference, ImageReference._fields, strict=True) if name != part
    ]


# Patches.

NAMES = st.sampled_from(["A", "B", "C"])
VARIABLES = st.lists(st.fixed_dictionaries({"name": NAMES, "value": st.text(max_size=3)}), max_size=4)
WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)
MAPS = st.dictionaries(NAMES, st.text(max_size=3), max_size=3)
SETTING = st.sampled_from(["overwrite", "delete", ""])


@given(
    st.builds(
        lambda env, args, labels: deployment(
            metadata={"labels": labels}, spec={"template": {"spec": {"containers": [container(env=env, args=args)]}}}
        ),
        VARIABLES,
        WORDS,
        MAPS,
    ),
    st.fixed_dictionaries(
        {
            "envs": st.lists(st.fixed_dictionaries({"operator": SETTING, "value": VARIABLES}), max_size=3),
            "args": st.lists(st.fixed_dictionaries({"operator": SETTING, "value": WORDS}), max_size=3),
            "labels": st.lists(st.fixed_dictionaries({"operator": SETTING, "value": MAPS}), max_size=3),
        }
    ),
)
def test_patches_that_set_or_delete_say_the_same_a_second_time(obj, stated):
    overriders = {
        name: [item if name == "labels" else {"containerName": "web", **item} for item in items]
        for name, items in stated.items()
    }
    patches, changed = rule_patches(overriders, obj)
    assert apply_patches(obj, patches) == changed
    assert apply_patches(changed, patches) == changed
    if stated["args"] and stated["args"][-1]["operator"] in ("overwrite", ""):
        assert containers(changed)[0].get("args") == (stated["args"][-1]["value"] or None)


# The example.


def test_the_example_can_be_applied():
    manifests = list(yaml.safe_load_all((EXAMPLES / "overrides" / "web.yaml").read_text()))
    policies = [
        msgspec.convert({"metadata": each["metadata"], "spec": each["spec"]}, OverridePolicy) for each in manifests
    ]
    web = next(each for each in yaml.safe_load_all((EXAMPLES / "web.yaml").read_text()) if each["kind"] == "Deployment")
    members = Fleet.of([cluster("member-1"), cluster("member-2", labels={"region": "eu"})]).members
    made = overrides(policies, template_of(web), members)
    assert made.refusals == {}
    assert set(made.patches) == {"member-2"}
    changed = apply_patches(template_of(web), made.patches["member-2"])
    assert containers(changed)[0]["image"] == "mirror.example/nginx:1.30"
