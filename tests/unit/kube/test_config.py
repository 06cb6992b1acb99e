"""Kubeconfigs: what they become, and how bad ones are refused."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kube import config
from argosy.kube.config import ConfigError, Connection
from argosy.kube.credentials import Credential


def kubeconfig(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "c"
) -> dict[str, Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "ns"}}],
        "clusters": [{"name": name, "cluster": {"server": "https://h:6443/", **(cluster or {})}}],
        "users": [{"name": name, "user": user if user is not None else {"token": "t"}}],
    }


def write(path: Path, content: Any) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_static_credentials_become_a_connection(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"CA")
    user = {
        "client-certificate-data": base64.b64encode(b"CERT").decode(),
        "client-key-data": base64.b64encode(b"KEY").decode(),
    }
    cluster = {"certificate-authority": "ca.pem", "tls-server-name": "name", "proxy-url": "http://p:1"}
    found = config.load(write(tmp_path / "k", kubeconfig(user, cluster)))
    assert found == Connection(
        server="https://h:6443",
        ca_data=b"CA",
        client_certificate=b"CERT",
        client_key=b"KEY",
        tls_server_name="name",
        proxy="http://p:1",
        namespace="ns",
    )


def test_several_files_are_merged_and_the_first_to_say_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "one", kubeconfig({"token": "one"}, name="a"))
    two = {**kubeconfig({"token": "two"}, name="b")}
    two["users"].append({"name": "a", "user": {"token": "shadowed"}})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{one}:{write(tmp_path / 'two', two)}")
    assert config.load().token == "one"
    assert config.load(context="b").token == "two"


async def test_token_files_are_read_again_when_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    found = config.load(write(tmp_path / "k", kubeconfig({"tokenFile": "token"})))
    assert found.credentials is not None
    assert await found.credentials() == Credential(authorization="Bearer first")
    (tmp_path / "token").write_text("second\n")
    assert await found.credentials() == Credential(authorization="Bearer first")
    assert await found.credentials(refresh=True) == Credential(authorization="Bearer second")


async def test_a_token_in_the_file_is_read_again_when_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    connection = config.renewable(write(path, kubeconfig(user={"token": "old"})))
    assert connection.token == "old"
    provider = connection.credentials
    assert provider is not None
    write(path, kubeconfig(user={"token": "new"}))
    assert (await provider()).authorization == "Bearer old"
    assert (await provider(refresh=True)).authorization == "Bearer new"
    path.write_text("{")
    assert (await provider(refresh=True)).authorization == "Bearer new"


async def test_user_and_password_become_basic_authorization(tmp_path: Path) -> None:
    found = config.load(write(tmp_path / "k", kubeconfig({"username": "u", "password": "p"})))
    assert found.credentials is not None
    assert await found.credentials() == Credential(authorization="Basic dTpw")


async def test_a_pods_service_account_is_used(tmp_path: Path) -> None:
    for name, text in [("token", "tok"), ("ca.crt", "CA"), ("namespace", "here")]:
        (tmp_path / name).write_text(text)
    found = config.in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (found.server, found.ca_data, found.namespace) == ("https://[fd00::1]:443", b"CA", "here")
    assert found.credentials is not None
    assert await found.credentials() == Credential(authorization="Bearer tok")


async def test_the_last_token_is_used_while_the_file_cannot_be_read(tmp_path: Path) -> None:
    found = config.load(write(tmp_path / "k", kubeconfig({"tokenFile": "token", "token": "given"})))
    assert found.credentials is not None
    assert await found.credentials() == Credential(authorization="Bearer given")
    (tmp_path / "token").write_text("read")
    assert await found.credentials(refresh=True) == Credential(authorization="Bearer read")
    (tmp_path / "token").unlink()
    assert await found.credentials(refresh=True) == Credential(authorization="Bearer read")


async def test_a_bad_token_file_is_one_line(tmp_path: Path) -> None:
    for content, says in [(None, "No such file"), ("", "is empty"), ("a\nb", "characters no token can have")]:
        if content is not None:
            (tmp_path / "token").write_text(content)
        found = config.load(write(tmp_path / "k", kubeconfig({"tokenFile": "token"})))
        assert found.credentials is not None
        with pytest.raises(ConfigError, match=says):
            await found.credentials()


async def test_a_broken_auth_provider_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes_asyncio")
    found = config.load(write(tmp_path / "k", kubeconfig({"auth-provider": {"name": "oidc"}})))
    assert found.credentials is not None
    with pytest.raises(ConfigError, match="oidc: missing configuration") as caught:
        await found.credentials()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "not valid YAML"),
        ("[]", "not a kubeconfig"),
        ("", "not a kubeconfig"),
        ("\x00", "not valid YAML"),
        ({"clusters": []}, "current-context is not set"),
        ({**kubeconfig(), "current-context": "other"}, "there is no context 'other' (it has: c)"),
        ({**kubeconfig(), "clusters": []}, "names cluster 'c', which does not exist"),
        ({**kubeconfig(), "users": None}, "names user 'c', which does not exist"),
        ({**kubeconfig(), "users": ["x"]}, "users must be a list"),
        (kubeconfig(cluster={"server": "h:6443"}), "is not an http or https URL"),
        (kubeconfig(cluster={"server": "https://h:port"}), "is not an http or https URL"),
        (kubeconfig(cluster={"server": 3}), "server must be a string"),
        (kubeconfig(user={"token": "t", "as": "bob"}), "acting as somebody else (`as`) is not supported"),
        (kubeconfig(cluster={"certificate-authority-data": "%%%"}), "certificate-authority-data is not base64"),
        (kubeconfig(cluster={"certificate-authority": "/no/such/ca"}), "/no/such/ca: No such file"),
    ],
)
def test_a_bad_kubeconfig_is_one_clear_line(tmp_path: Path, content: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(write(tmp_path / "k", content))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: No such file"):
        config.load(str(tmp_path / "nowhere"))
