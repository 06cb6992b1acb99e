"""The type config that a definition makes."""

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedTypeConfig
from argosy.kube.resource import Resource
from argosy.plan.derivedtypes import Definition, derived, is_derived, is_unchanged, may_derive
from tests.harness.definitions import scaled_definition

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def definition(annotations=None, of=WIDGETS, **subresources):
    manifest = {**scaled_definition(of), "status": ESTABLISHED}
    manifest["metadata"]["annotations"] = annotations or {}
    manifest["spec"]["versions"][0]["subresources"] = subresources
    return msgspec.convert(manifest, Definition)


def made(found):
    return msgspec.convert(derived(found), FederatedTypeConfig)


def test_scope_steps_and_name():
    config = made(definition())
    assert config.name == "widgets.example.com"
    assert config.resource == WIDGETS
    assert config.spec.controllers == ((keys.GLOBAL_SCHEDULER,), (keys.OVERRIDE_CONTROLLER,))
    assert is_derived(config)
    assert is_unchanged(config)


def test_the_scale_subresource_says_where_the_replicas_are():
    paths = made(definition(scale=SCALE, status={})).spec.path_definition
    assert (paths.replicas_spec, paths.replicas_status) == ("spec.replicas", "status.replicas")
    assert paths.label_selector == "status.selector"
    assert paths.ready_replicas_status == "status.readyReplicas"
    assert paths.available_replicas_status == ""
    assert made(definition(status={})).spec.path_definition.replicas_spec == ""


def test_of_a_kind_that_is_known_its_rule_says_what_its_definition_does_not():
    rollouts = Resource("argoproj.io", "v1alpha1", "rollouts", "Rollout")
    paths = made(definition(of=rollouts)).spec.path_definition
    assert (paths.replicas_spec, paths.available_replicas_status) == ("spec.replicas", "status.availableReplicas")


def test_a_status_is_collected_and_written_if_it_is_a_subresource():
    spec = made(definition(status={})).spec
    assert "status" in spec.status_collection.fields
    assert spec.status_aggregation.enabled
    spec = made(definition()).spec
    assert "status" in spec.status_collection.fields
    assert not spec.status_aggregation.enabled


def test_the_version_that_is_stored_or_else_the_first_that_is_served():
    found = definition()
    [version] = found.spec.versions
    unserved = msgspec.structs.replace(version, name="v2", served=False)
    later = msgspec.structs.replace(version, name="v3", storage=False)

    def of(*versions):
        return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, versions=versions))

    assert made(of(later, version)).resource.version == "v1"
    assert made(of(unserved, later)).resource.version == "v3"
    assert derived(of(unserved)) is None


def test_who_changed_one_is_seen():
    config = made(definition())
    spec = msgspec.structs.replace(config.spec, controllers=())
    assert not is_unchanged(msgspec.structs.replace(config, spec=spec))


def test_of_what_nothing_is_made():
    assert may_derive(definition())
    assert not may_derive(definition({keys.MAKE_TYPE_CONFIG: "false"}))
    assert not may_derive(msgspec.structs.replace(definition(), status=msgspec.convert({}, type(definition().status))))
    own = msgspec.structs.replace(definition().spec, group=keys.GROUP)
    assert not may_derive(msgspec.structs.replace(definition(), spec=own))
