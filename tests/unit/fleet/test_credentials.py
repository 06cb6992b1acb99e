"""Connection values: which secret keys are needed when, and that secrets are never printed."""

import msgspec
import pytest

from argosy.api.types import FederatedCluster
from argosy.fleet.credentials import Connection, CredentialsError, connection_from_secret

CA = {"certificate-authority-data": b"ca"}
PAIR = {"client-certificate-data": b"cert", "client-key-data": b"key"}
TOKEN = {"bootstrap-token-data": b"token"}
ACCOUNT = {"service-account-token-data": b"account"}


def cluster(endpoint="10.0.0.1:6443", **spec):
    return msgspec.convert({"metadata": {"name": "m1"}, "spec": {"apiEndpoint": endpoint, **spec}}, FederatedCluster)


def test_a_certificate_pair_a_token_or_both():
    server = "https://10.0.0.1:6443"
    pair = connection_from_secret(cluster(), CA | PAIR)
    assert pair == Connection(server, False, b"ca", b"cert", b"key")
    assert connection_from_secret(cluster(), CA | TOKEN) == Connection(server, False, b"ca", token=b"token")
    assert connection_from_secret(cluster(), CA | PAIR | TOKEN).token == b"token"


def test_the_scheme_is_read_as_it_is_meant():
    assert connection_from_secret(cluster("HTTPS://10.0.0.1/"), CA | TOKEN).server == "https://10.0.0.1"
    assert connection_from_secret(cluster("HTTP://10.0.0.1"), CA | TOKEN).server == "http://10.0.0.1"


def test_half_a_pair_beside_a_token_is_left_out():
    found = connection_from_secret(cluster(), CA | TOKEN | {"client-key-data": b"key"})
    assert (found.cert_data, found.key_data) == (b"", b"")


def test_insecure_needs_and_uses_no_ca():
    assert connection_from_secret(cluster(insecure=True), CA | PAIR).ca_data == b""


def test_a_service_account_uses_its_token_alone_once_joined():
    member = cluster(useServiceAccount=True)
    data = CA | PAIR | TOKEN | ACCOUNT
    assert connection_from_secret(member, data) == Connection("https://10.0.0.1:6443", False, b"ca", token=b"account")
    assert connection_from_secret(member, data, bootstrap=True).cert_data == b"cert"


@pytest.mark.parametrize(
    ("data", "spec", "message"),
    [
        (PAIR, {}, '"certificate-authority-data" data is missing from secret and insecure is false'),
        (CA, {}, "the client authentication information is missing from secret"),
        (CA | {"client-key-data": b"key"}, {}, "the client authentication information is missing from secret"),
        (CA | PAIR, {"useServiceAccount": True}, '"service-account-token-data" data is missing from secret'),
        (CA | PAIR, {"endpoint": ""}, "apiEndpoint is empty"),
    ],
)
def test_what_is_missing_is_named(data, spec, message):
    with pytest.raises(CredentialsError, match=message):
        connection_from_secret(cluster(**spec), data)


def test_an_endpoint_without_a_scheme_means_https():
    assert connection_from_secret(cluster("member.example:6443/"), CA | PAIR).server == "https://member.example:6443"
    assert connection_from_secret(cluster("http://localhost:80"), CA | PAIR).server == "http://localhost:80"


def test_secrets_are_not_printed():
    printed = repr(connection_from_secret(cluster(), CA | PAIR | TOKEN))
    assert "token" not in printed
    assert "key" not in printed
    assert printed == "Connection(server='https://10.0.0.1:6443', insecure=False)"
