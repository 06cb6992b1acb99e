"""Vectors of override policies: the patches of each overrider, and of whole policies."""

from collections.abc import Callable
from typing import Any

import msgspec

from argosy.api.clusters import FederatedCluster
from argosy.api.policies import OverridePolicy
from argosy.fleet.snapshot import Fleet
from argosy.plan.copies.patches import OverrideError
from argosy.plan.overriders.rule import rule_patches
from argosy.plan.pipeline.override import overrides

Case = dict[str, Any]


def _overrider(name: str, case: Case) -> Case:
    try:
        patches, _ = rule_patches({name: case["overriders"]}, case["template"])
    except OverrideError:
        return {"error": True}
    return {"error": False, "patches": patches}


def _of_target(case: Case) -> Case:
    return _overrider(case["target"], case)


def _image(case: Case) -> Case:
    return _overrider("image", case)


def _envs(case: Case) -> Case:
    return _overrider("envs", case)


def _policy(case: Case) -> Case:
    policy = {"metadata": {"name": "differ"}, "spec": case["policy"]["spec"]}
    clusters = [
        msgspec.convert({"spec": {"apiEndpoint": "https://x", "secretRef": {"name": "x"}}, **each}, FederatedCluster)
        for each in case["clusters"] or ()
    ]
    made = overrides([msgspec.convert(policy, OverridePolicy)], case["template"] or {}, Fleet.of(clusters).members)
    if made.refusals:
        return {"error": True}
    return {"error": False, "patches_by_cluster": made.patches}


ADAPTERS: dict[str, Callable[[Case], Any]] = {
    "override_command_args": _of_target,
    "override_env": _envs,
    "override_image": _image,
    "override_labels_annotations": _of_target,
    "override_parse": _policy,
}
