"""Seeds: valid requests to start from. The request files of the server's tests, and objects of the federation."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

from argosy.api import keys
from tests.server import replay

__all__ = ["NAMESPACES", "PLANTED", "Seed", "seeds"]

Json = dict[str, Any]
#: Where everything happens. They are deleted now and then, and made again.
NAMESPACES = ("fuzz-0", "fuzz-1", "fuzz-2")
#: Names of objects: few, so that they are met again.
_REQUESTS = Path(replay.__file__).parent / "requests"
_FEDERATION = f"/apis/{keys.API_VERSION}"
#: Not written to: the way to the member that lies, and what is there in any case.
PLANTED = ("federatedclusters",)


class Seed(NamedTuple):
    """A request with a body: its path has {ns} and {name} where those go, and ends in the collection."""

    collection: str
    body: Json


@functools.cache
def seeds() -> list[Seed]:
    found = [*_federation()]
    for path in sorted(_REQUESTS.glob("*.yaml")):
        for step in replay.load(path)["steps"]:
            method, _, target = str(step.get("request", "")).partition(" ")
            body = step.get("body")
            collection = target.partition("?")[0]
            if method == "POST" and isinstance(body, dict) and isinstance(body.get("metadata"), dict):
                if collection.endswith(("/token", "/eviction", "/binding")):
                    continue
                found.append(Seed(collection, body))
    return found


def _federation() -> list[Seed]:
    policy = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": {"name": "{name}"}}
    labelled = {"name": "{name}", "labels": {keys.PROPAGATION_POLICY_LABEL: "policy"}}
    containers = [{"name": "main", "image": "nginx:1.29", "resources": {"requests": {"cpu": "100m"}}}]
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
    placement = [{"cluster": "liar", "preferences": {"weight": 2, "minReplicas": 1, "maxReplicas": 5}}]
    tolerations = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    affinity = [{"matchExpressions": [{"key": "name", "operator": "In", "values": ["liar"]}]}]
    overriders = {"jsonpatch": [{"operator": "replace", "path": "/spec/replicas", "value": 3}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": labelled,
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    return [
        Seed(
            f"{_FEDERATION}/namespaces/{{ns}}/propagationpolicies",
            {
                **policy,
                "spec": {
                    "schedulingMode": "Divide",
                    "placement": placement,
                    "tolerations": tolerations,
                    "clusterSelector": {"name": "liar"},
                    "clusterAffinity": affinity,
                    "maxClusters": 2,
                    "reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": True}},
                    "autoMigration": {"when": {"podUnschedulableFor": "1m"}},
                },
            },
        ),
        Seed(
            f"{_FEDERATION}/namespaces/{{ns}}/overridepolicies",
            {
                "apiVersion": keys.API_VERSION,
                "kind": "OverridePolicy",
                "metadata": {"name": "{name}"},
                "spec": {"overrideRules": [{"targetClusters": {"clusters": ["liar"]}, "overriders": overriders}]},
            },
        ),
        Seed("/apis/apps/v1/namespaces/{ns}/deployments", deployment),
        Seed(
            "/api/v1/namespaces/{ns}/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": labelled, "data": {"a": "b"}},
        ),
    ]
