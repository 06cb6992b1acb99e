"""Real kubectl's typed commands, whose bodies are protobuf: what they create is what kube-apiserver would store.

The expected objects are kube-apiserver 1.36's answers to the same commands.
"""

import json
from typing import Any

from tests.server import test_kubectl_reading as reading
from tests.server.test_kubectl_reading import Kubectl

pytestmark = reading.pytestmark
kubectl = reading.kubectl

POD_DEFAULTS = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
CONTAINER_DEFAULTS = {
    "imagePullPolicy": "Always",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


async def created(kubectl: Kubectl, command: str) -> Any:
    head, separator, tail = command.partition(" -- ")
    after = ["--", *tail.split()] if separator else []
    result = await kubectl(*head.split(), "-o", "json", *after)
    assert result.code == 0, result.err
    # Older kubectl prints a creationTimestamp of null that the server did not send.
    return json.loads(
        result.out, object_pairs_hook=lambda pairs: {key: value for key, value in pairs if value is not None}
    )


async def test_the_bodies_are_protobuf(kubectl: Kubectl) -> None:
    made = await kubectl("create", "namespace", "shop", "-v=8")
    assert made.code == 0, made.err
    sent = [line for line in made.err.splitlines() if "Content-Type" in line]
    assert any("application/vnd.kubernetes.protobuf" in line for line in sent), made.err


async def test_deployments(kubectl: Kubectl) -> None:
    web = await created(kubectl, "create deployment web --image=nginx --image=redis:7 --replicas=0")
    assert web["metadata"]["labels"] == {"app": "web"}
    assert web["spec"] == {
        "progressDeadlineSeconds": 600,
        "replicas": 0,
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": POD_DEFAULTS
            | {
                "containers": [
                    CONTAINER_DEFAULTS | {"image": "nginx", "name": "nginx"},
                    CONTAINER_DEFAULTS | {"image": "redis:7", "name": "redis", "imagePullPolicy": "IfNotPresent"},
                ]
            },
        },
    }
    scaled = await created(kubectl, "autoscale deployment web --min=1 --max=5 --cpu-percent=80")
    assert (scaled["spec"]["minReplicas"], scaled["spec"]["maxReplicas"]) == (1, 5)
    exposed = await created(kubectl, "expose deployment web --port=80 --target-port=8080 --session-affinity=ClientIP")
    assert exposed["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    assert exposed["spec"]["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


async def test_pods_and_jobs(kubectl: Kubectl) -> None:
    pod = await created(kubectl, "run p --image=nginx --env=A=b --env=E= --port=80 --restart=Never")
    (container,) = pod["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "b"}, {"name": "E"}]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert pod["spec"]["restartPolicy"] == "Never"
    job = await created(kubectl, "create job j --image=busybox -- date -u")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["date", "-u"]
    assert job["spec"]["backoffLimit"] == 6
    assert (await created(kubectl, "create cronjob c --image=busybox --schedule=@hourly"))["spec"][
        "schedule"
    ] == "@hourly"
    copied = await created(kubectl, "create job manual --from=cronjob/c")
    assert copied["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


async def test_configuration(kubectl: Kubectl) -> None:
    config = await created(kubectl, "create configmap c --from-literal=a=b --from-literal=empty=")
    assert config["data"] == {"a": "b", "empty": ""}
    secret = await created(kubectl, "create secret generic s --from-literal=password=s3cret --type=example.com/kind")
    assert (secret["data"], secret["type"]) == ({"password": "czNjcmV0"}, "example.com/kind")
    quota = await created(kubectl, "create quota q --hard=cpu=1,memory=1Gi,pods=2")
    assert quota["spec"] == {"hard": {"cpu": "1", "memory": "1Gi", "pods": "2"}}
    budget = await created(kubectl, "create pdb b --selector=app=web --min-available=0")
    assert budget["spec"] == {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    share = await created(kubectl, "create pdb share --selector=app=web --max-unavailable=50%")
    assert share["spec"]["maxUnavailable"] == "50%"
    lowest = await created(kubectl, "create priorityclass lowest --value=0")
    assert (lowest["value"], lowest["preemptionPolicy"]) == (0, "PreemptLowerPriority")


async def test_services_and_ingresses(kubectl: Kubectl) -> None:
    plain = await created(kubectl, "create service clusterip plain --tcp=80:8080 --tcp=443")
    assert plain["spec"]["ports"] == [
        {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080},
        {"name": "443", "port": 443, "protocol": "TCP", "targetPort": 443},
    ]
    headless = await created(kubectl, "create service clusterip headless --clusterip=None")
    assert headless["spec"]["clusterIPs"] == ["None"]
    named = await created(kubectl, "create service externalname named --external-name=x.example.com")
    assert named["spec"]["externalName"] == "x.example.com"
    ingress = await created(kubectl, "create ingress i --rule=foo.com/x*=svc:http,tls=cert --class=nginx")
    assert ingress["spec"] == {
        "ingressClassName": "nginx",
        "rules": [
            {
                "host": "foo.com",
                "http": {
                    "paths": [
                        {
                            "backend": {"service": {"name": "svc", "port": {"name": "http"}}},
                            "path": "/x",
                            "pathType": "Prefix",
                        }
                    ]
                },
            }
        ],
        "tls": [{"hosts": ["foo.com"], "secretName": "cert"}],
    }


async def test_accounts_roles_and_tokens(kubectl: Kubectl) -> None:
    await created(kubectl, "create serviceaccount robot")
    role = await created(kubectl, "create role reader --verb=get,list --resource=pods,deployments.apps")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
    ]
    binding = await created(kubectl, "create rolebinding b --role=reader --serviceaccount=default:robot --group=g")
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    assert binding["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
    ]
    robot = "--as=system:serviceaccount:default:robot"
    assert (await kubectl("auth", "can-i", "list", "pods", robot)).out.strip() == "yes"
    assert (await kubectl("auth", "can-i", "delete", "pods", robot)).out.strip() == "no"
    assert "admin" in (await kubectl("auth", "whoami")).out
    token = await kubectl("create", "token", "robot", "--duration=1h")
    assert token.out.count(".") == 2, token.err


async def test_refusals_read_as_kubernetes_words_them(kubectl: Kubectl) -> None:
    for command, error in (
        ("create deployment bad_name --image=x", "metadata.name: Invalid value"),
        ("create priorityclass huge --value=2000000001", "value: Forbidden: maximum allowed value"),
        ("create token nobody", '"nobody" not found'),
        ("create namespace default", 'namespaces "default" already exists'),
    ):
        refused = await kubectl(*command.split())
        assert refused.code == 1, command
        assert error in refused.err


async def test_deletions_carry_their_options(kubectl: Kubectl) -> None:
    await created(kubectl, "create configmap kept --from-literal=a=b")
    assert (await kubectl("delete", "configmap", "kept", "--dry-run=server")).code == 0
    assert (await kubectl("get", "configmap", "kept")).code == 0
    assert (await kubectl("delete", "configmap", "kept", "--cascade=foreground", "--now")).code == 0
    assert "not found" in (await kubectl("get", "configmap", "kept")).err
