"""Bad input: one clear line and a hint, the exit code, nothing lost and no traceback."""

import contextlib
import http.server
import socket
import ssl
import sys
import threading

import pytest

from argosy.cli.commands.taint import changed
from argosy.cli.output.failures import explained
from argosy.cli.output.logs import _Lines
from argosy.testing.certificates import Authority
from tests.e2e.test_cli import until
from tests.harness.commands import argosy

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec:
  replicas: 1
  selector: {matchLabels: {app: bad}}
  template:
    metadata: {labels: {app: bad}}
    spec: {containers: [{name: main, image: nginx}]}
"""


def kubeconfig(user: str, server: str = "https://127.0.0.1:1") -> str:
    return (
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        f'clusters: [{{name: x, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]\n'
        f"users: [{{name: x, user: {user}}}]\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n"
    )


def complaint(said, code: int = 1) -> str:
    assert said.code == code, said
    assert "Traceback" not in said.err + said.out
    errors = [line for line in said.lines if line.startswith("error: ")]
    assert len(errors) == 1, said.err
    return errors[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [a\n", "bad.yaml line 5, column 1: not valid YAML"),
        ("kind: ConfigMap\nmetadata:\n  name: a\n  name: b\n", "bad.yaml line 4: the field 'name' is there twice"),
        ("\n- 1\n", "bad.yaml line 2: this is no Kubernetes object"),
        ("kind: ConfigMap\nmetadata: {name: a}\n", "bad.yaml line 1: apiVersion is missing"),
        ("apiVersion: v1\nkind: ConfigMap\n", "bad.yaml line 1: metadata.name is missing"),
        ("apiVersion: v1\nkind: Gadget\nmetadata: {name: a}\n", "the server has no kind Gadget in v1"),
        (DEPLOYMENT.replace("replicas", "replica"), 'unknown field "spec.replica"'),
        (DEPLOYMENT.replace("replicas: 1", "replicas: -1"), "spec.replicas"),
        ("# nothing\n", "no objects in"),
        ("a: " + "[" * 5000 + "\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
    ],
)
def test_a_manifest_that_is_refused_names_its_place(cli, tmp_path, text, told):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert told in complaint(cli("apply", "-f", str(path)))
    assert cli("status", "deployment/bad").code == 1


def test_a_policy_that_names_a_missing_cluster_is_told_by_status(cli, tmp_path):
    path = tmp_path / "policy.yaml"
    labels = "labels: {kubeadmiral.io/propagation-policy-name: lost}"
    path.write_text(
        "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: lost}\n"
        "spec: {schedulingMode: Divide, placement: [{cluster: nowhere}]}\n---\n"
        + DEPLOYMENT.replace("{name: bad}", f"{{name: lost, {labels}}}")
    )
    cli.ok("apply", "-f", str(path))
    try:
        waiting = ("status", "deployment/lost", "--wait", "--timeout", "1")
        until(lambda: "were not in placement list" in complaint(cli(*waiting)))
    finally:
        cli.ok("delete", "-f", str(path))


def test_a_secret_without_a_key_is_told_and_harms_nobody(cli, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: keyless, namespace: kube-admiral-system}\n"
        "stringData: {certificate-authority-data: x}\n---\n"
        "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\nmetadata: {name: keyless}\n"
        "spec: {apiEndpoint: 'https://127.0.0.1:1', secretRef: {name: keyless}}\n"
    )
    cli.ok("apply", "-f", str(path))
    try:
        member = tmp_path / "kubeconfig"
        member.write_text(kubeconfig("{}"))
        assert "no credentials for keyless" in complaint(cli("join", "keyless", "--kubeconfig", str(member)))
        assert "False" in cli.ok("get", "clusters", "keyless") or "Unknown" in cli.ok("get", "clusters", "keyless")
        assert cli.ok("get", "clusters", "member-1").splitlines()[1].split()[1] == "True"
    finally:
        cli.ok("unjoin", "keyless")
        cli.ok("delete", "secret/keyless", "-n", "kube-admiral-system")


def test_an_unreachable_member_is_told_and_can_be_taken_back(cli, tmp_path):
    member = tmp_path / "kubeconfig"
    member.write_text(kubeconfig("{token: abc}"))
    assert "far was not ready within 1 s" in complaint(
        cli("join", "far", "--kubeconfig", str(member), "--keep-credentials", "--timeout", "1")
    )
    assert "far is leaving" in cli.ok("unjoin", "far", "--timeout", "0")


def test_a_cluster_that_does_not_answer_is_not_made_a_member(cli, tmp_path):
    member = tmp_path / "kubeconfig"
    member.write_text(kubeconfig("{token: abc}"))
    assert "away does not answer" in complaint(cli("join", "away", "--kubeconfig", str(member)))
    assert cli("get", "clusters", "away").code == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file"),
        ("clusters: [", "not valid YAML"),
        ("clusters: 3\n", "current-context is not set"),
        (kubeconfig("{token: abc}"), "the API server does not answer"),
        (kubeconfig("{token: abc}", "ftp://x"), "is not an http or https URL"),
    ],
)
def test_a_wrong_kubeconfig(cli, tmp_path, content, told):
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    said = cli.bare("--kubeconfig", str(path), "get", "clusters")
    assert told in complaint(said)
    assert "0x" not in said.err


class _Page(http.server.BaseHTTPRequestHandler):
    """Some server or other: every address of it is a page."""

    def do_GET(self):
        body = b"<html><head><title>Welcome</title></head></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        return


@contextlib.contextmanager
def stranger(folder, *, secure):
    """The URL of a server that is no Kubernetes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    if secure:
        pair = Authority("stranger").server(["localhost"], ["127.0.0.1"])
        pair.write(folder, "stranger")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "stranger.crt", folder / "stranger.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


COMMANDS = {
    "get": ["get", "clusters"],
    "apply": ["apply", "-f", "deployment.yaml"],
    "install": ["install"],
    "install-dry-run": ["install", "--dry-run", "-o", "yaml"],
    "join": ["join", "x", "--kubeconfig", "member"],
    "controllers": ["controllers", "--port", "0"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_control_plane_that_is_none(cli, tmp_path, monkeypatch, command):
    """Each in one line, the one that says what is wrong, whatever was asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deployment.yaml").write_text(DEPLOYMENT)
    (tmp_path / "member").write_text(kubeconfig("{token: abc}"))

    def said(server):
        (tmp_path / "kubeconfig").write_text(kubeconfig("{token: abc}", server))
        run = argosy if command == "controllers" else cli.bare
        answer = run("--kubeconfig", "kubeconfig", *COMMANDS[command])
        assert answer.lines[-1].startswith("hint: ")
        return complaint(answer)

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert f"the API server does not answer: https://127.0.0.1:{port}" in said(f"https://127.0.0.1:{port}")
    for secure in (True, False):
        with stranger(tmp_path, secure=secure) as url:
            told = said(url)
            assert told.startswith("error: this is no Kubernetes API server")
            assert url in told
            if not secure:
                assert "no secure connection" in said(url.replace("http://", "https://"))


def test_credentials_that_the_server_refuses(cli, tmp_path):
    import yaml

    config = yaml.safe_load(cli.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "wrong"}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    assert "Unauthorized" in complaint(cli.bare("--kubeconfig", str(path), "get", "clusters"))


def test_a_plugins_credentials_cannot_be_kept_and_there_is_a_way_out(cli, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(
        kubeconfig("{exec: {command: foo, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}")
    )
    said = cli("join", "x", "--kubeconfig", str(path), "--keep-credentials")
    assert "gets its credentials from a plugin" in complaint(said)
    assert "token" in said.lines[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "deployment"],
        ["get", "nonsense"],
        ["taint", "cluster", "member-1", "maintenance"],
        ["taint", "cluster", "member-1", "a=b:Never"],
        ["taint", "node", "member-1", "a=b:NoExecute"],
        ["patch", "deploy/web", "-p", "{"],
        ["patch", "deploy/web", "-p", "[]"],
        ["label", "deploy/web", "nothing"],
        ["delete"],
        ["pause", "fleet", "x"],
        ["join", "Not_A_Name", "--kubeconfig", "/dev/null", "-l", "x"],
    ],
)
def test_misuse_is_exit_code_2_or_one_line(cli, arguments):
    said = cli(*arguments)
    assert said.code in (1, 2)
    assert len([line for line in said.lines if line.startswith("error: ")]) == 1


@pytest.mark.parametrize("arguments", [["nonsense"], ["scale", "deploy/web", "--replicas", "-1"]])
def test_unknown_words_and_numbers_are_usage_errors(cli, arguments):
    assert cli(*arguments).code == 2


def test_what_is_not_there(cli):
    assert 'deployments.apps "none" not found' in complaint(cli("status", "deploy/none"))
    assert "the server has no kind 'gadget'" in complaint(cli("status", "gadget/x"))
    assert "there is no member 'none'" in complaint(cli("unjoin", "none"))


@pytest.mark.parametrize("command", [["up"], ["up", "--detach"], ["server"]])
def test_a_busy_port(tmp_path, command):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = str(busy.getsockname()[1])
        said = argosy(*command, "--data", str(tmp_path / "data"), "--port", port)
    assert complaint(said) == f"error: port {port} on 127.0.0.1 is in use by another program"
    assert "--port" in said.lines[1]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder nobody can write to, root included")
@pytest.mark.parametrize("command", ["up", "sim", "server"])
def test_a_folder_that_cannot_be_written(command):
    said = argosy(command, "--data", "/proc/argosy")
    assert "/proc/argosy" in complaint(said)


def test_a_full_disk_is_told_in_one_line():
    import errno

    failure = explained(OSError(errno.ENOSPC, "No space left on device", "/data/x"))
    assert failure.message == "/data/x: No space left on device"
    assert "make room" in failure.hint


def test_debug_shows_the_traceback(cli, monkeypatch):
    monkeypatch.setenv("ARGOSY_DEBUG", "1")
    with pytest.raises(Exception, match="not found"):
        cli("status", "deploy/none")


def test_taints_are_there_once_by_key_and_effect():
    taints = changed([], ["a=1:NoSchedule", "a=2:NoSchedule", "a:NoExecute", "b-x/y.z:NoExecute"])
    assert taints == [
        {"key": "a", "value": "2", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoExecute"},
        {"key": "b-x/y.z", "effect": "NoExecute"},
    ]
    assert changed(taints, ["a:NoExecute-", "b-x/y.z-"]) == [{"key": "a", "value": "2", "effect": "NoSchedule"}]


def test_the_log_keeps_credentials_out():
    import logging

    key = "-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----"
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"
    record = logging.makeLogRecord({"name": "argosy.x", "msg": f"Authorization: Bearer s3cret, {token}, {key} end"})
    text = _Lines().format(record)
    assert not any(secret in text for secret in ("s3cret", "eyJ", "abc"))
    assert text.endswith(" end")
