"""The components' command lines, and their files. Pure except `write_files`.

All listen on 127.0.0.1 only and call only each other. What kube-apiserver would dial in the cluster (pods, nodes, services: for
proxy, logs, exec, a webhook behind a service) goes by its egress selector to a socket that does not exist, and so fails at
once; webhooks by URL are dialled directly.
"""

from pathlib import Path
from typing import Any

import msgspec

from argosy.kube.yamlwriter import to_yaml
from argosy.testing.certificates import Authority, KeyPair, write_signing_key
from argosy.testing.options import Options

__all__ = ["IDENTITIES", "Files", "Ports", "command", "component_names", "write_files"]

#: Not loopback, which Endpoints may not contain; from a documentation range, and never dialled.
_ADVERTISED = "198.51.100.1"
_POD_RANGE = "198.18.0.1/15"
_SERVICE_RANGE = "10.96.0.0/16"
_SERVICE_ADDRESS = "10.96.0.1"
#: The components' users in kube-apiserver: users with roles from the start, so that audit logs tell them apart.
IDENTITIES: dict[str, tuple[str, list[str]]] = {
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kwok": ("kwok", ["system:masters"]),
}
_STAGES = Path(__file__).with_name("stages.yaml")


class Ports(msgspec.Struct, frozen=True):
    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int


class Files(msgspec.Struct, frozen=True):
    """The files in a cluster's folder; the components run in it, so relative names suffice."""

    folder: Path
    authority: Authority
    admin: KeyPair


def component_names(options: Options) -> list[str]:
    names = ["etcd", "kube-apiserver"]
    if options.controllers:
        names.append("kube-controller-manager")
    if options.nodes:
        names += ["kube-scheduler", "kwok"]
    return names


def command(name: str, ports: Ports, options: Options) -> list[str]:
    """The component's arguments; it must run in the cluster's folder."""
    if name == "etcd":
        return _etcd(ports, options)
    if name == "kube-apiserver":
        return _apiserver(ports, options)
    if name == "kube-controller-manager":
        return _controller_manager(ports, options)
    if name == "kube-scheduler":
        return _scheduler(ports, options)
    return _kwok(ports)


def _etcd(ports: Ports, options: Options) -> list[str]:
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        "--name=default",
        "--data-dir=etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        *([] if options.fsync else ["--unsafe-no-fsync"]),
    ]


def _apiserver(ports: Ports, options: Options) -> list[str]:
    audit = [
        "--audit-policy-file=audit-policy.yaml",
        "--audit-log-path=audit.log",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=100000",  # never rotated: it is read on from the last position
    ]
    return [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        f"--advertise-address={_ADVERTISED}",
        "--cert-dir=.",
        "--tls-cert-file=apiserver.crt",
        "--tls-private-key-file=apiserver.key",
        "--client-ca-file=ca.crt",
        "--token-auth-file=tokens.csv",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-account.pub",
        "--service-account-signing-key-file=service-account.key",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--requestheader-client-ca-file=front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--proxy-client-cert-file=front-proxy.crt",
        "--proxy-client-key-file=front-proxy.key",
        "--egress-selector-config-file=egress.yaml",
        *(audit if options.audit else []),
        *_gates(options),
        *options.apiserver_arguments,
    ]


def _controller_manager(ports: Ports, options: Options) -> list[str]:
    return [
        *_client_of_apiserver("kube-controller-manager", ports.controller_manager),
        f"--controllers={','.join(options.controllers)}",
        "--use-service-account-credentials",
        "--service-account-private-key-file=service-account.key",
        "--root-ca-file=ca.crt",
        "--cluster-signing-cert-file=ca.crt",
        "--cluster-signing-key-file=ca.key",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        *_gates(options),
    ]


def _scheduler(ports: Ports, options: Options) -> list[str]:
    return [*_client_of_apiserver("kube-scheduler", ports.scheduler), *_gates(options)]


def _client_of_apiserver(name: str, port: int) -> list[str]:
    return [
        f"--kubeconfig={name}.kubeconfig",
        f"--authentication-kubeconfig={name}.kubeconfig",
        f"--authorization-kubeconfig={name}.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--cert-dir=.",
        "--leader-elect=false",
        # With the default of 20 a start takes four seconds longer.
        "--kube-api-qps=300",
        "--kube-api-burst=500",
    ]


def _kwok(ports: Ports) -> list[str]:
    return [
        "--kubeconfig=kwok.kubeconfig",
        f"--config={_STAGES}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        "--node-ip=127.0.0.1",
        f"--cidr={_POD_RANGE}",
        f"--server-address=127.0.0.1:{ports.kwok}",
    ]


def _gates(options: Options) -> list[str]:
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in options.feature_gates.items())
    return [f"--feature-gates={gates}"] if gates else []


def write_files(folder: Path) -> Files:
    """Certificates, keys and configuration of one cluster, readable only by us."""
    authority, front_proxy = Authority("kubernetes"), Authority("front-proxy-ca")
    (folder / "ca.crt").write_bytes(authority.certificate)
    authority.write_key(folder / "ca.key")
    (folder / "front-proxy-ca.crt").write_bytes(front_proxy.certificate)
    names = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"]
    authority.server(names, ["127.0.0.1", _SERVICE_ADDRESS]).write(folder, "apiserver")
    front_proxy.client("front-proxy").write(folder, "front-proxy")
    write_signing_key(folder)
    _write_yaml(folder / "egress.yaml", _egress(folder / "nowhere.sock"))
    _write_yaml(folder / "audit-policy.yaml", _AUDIT_POLICY)
    return Files(folder, authority, authority.client("admin", ["system:masters"]))


def _egress(nowhere: Path) -> dict[str, Any]:
    direct = {"proxyProtocol": "Direct"}
    nobody = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(nowhere)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "controlplane", "connection": direct},
            {"name": "etcd", "connection": direct},
            {"name": "cluster", "connection": nobody},
        ],
    }


def _write_yaml(path: Path, document: dict[str, Any]) -> None:
    path.write_text(to_yaml(document).decode())


_AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
    ],
}
