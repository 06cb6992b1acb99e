"""Where somebody else's URL may have us send something."""

import ssl

import aiohttp.connector
import pytest

from argosy.kube.config import Connection
from argosy.kube.credentials import ConfigError
from argosy.kube.endpoints import DEFAULT_RULES, EndpointRules, parse_rules
from argosy.kube.errors import TransportError
from argosy.kube.http import HttpTransport
from argosy.kube.resolver import GuardedResolver
from argosy.kube.transport import Request
from argosy.server.embedded import EmbeddedServer


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com",
        "https://10.0.0.1:6443",
        "https://[2001:db8::1]:6443/k8s/clusters/c-1",
        "https://127.0.0.1:6443",
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "http://[::1]:8080",
        "http://[::ffff:127.0.0.1]:8080",
        "https://[::ffff:0:10.0.0.1]:6443",
        "https://[2001:0:102:304:0:0:f5ff:fffe]:6443",
        "https://[2001:1::1]:6443",
    ],
)
def test_addresses_of_servers_are_allowed(url):
    assert DEFAULT_RULES.refusal(url) == ""


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://api.example.com", "in the clear"),
        ("http://10.0.0.1:8080", "in the clear"),
        ("https://169.254.169.254", "link-local"),
        ("https://169.254.169.254:443/latest", "link-local"),
        ("https://[fe80::1]", "link-local"),
        ("https://[fe80::1%25eth0]", "link-local"),
        ("https://[::ffff:169.254.169.254]", "link-local"),
        ("https://[64:ff9b::a9fe:a9fe]", "link-local"),
        ("https://2852039166", "not how an address is written"),
        ("https://0251.0376.0251.0376", "not how an address is written"),
        ("https://169.254.43518", "not how an address is written"),
        ("https://0xa9fea9fe", "not how an address is written"),
        ("https://169.254.169.254.", "not how an address is written"),
        ("https://[2002:a9fe:a9fe::1]", "link-local"),
        ("https://[64:ff9b:1::a9fe:a9fe]", "link-local"),
        ("https://[::a9fe:a9fe]", "link-local"),
        ("https://[fd00:ec2::254]", "metadata"),
        ("https://100.100.100.200", "metadata"),
        ("https://0.0.0.0", "link-local"),
        ("https://224.0.0.1", "multicast"),
        ("https://user:secret@api.example.com", "a user or a password"),
        ("https://api.example.com/?x=1", "a query"),
        ("https://api.example.com/#x", "a fragment"),
        ("https://api.example.com?", "a query"),
        ("https://api.example.com/?", "a query"),
        ("https://api.example.com#", "a fragment"),
        ("https://api.example.com/#", "a fragment"),
        ("https://api.example.com/#/", "a fragment"),
        ("https://api.example.com/api/v1/namespaces/kube-admiral-system?", "a query"),
        ("https://[::ffff:0:169.254.169.254]/", "link-local"),
        ("https://[::ffff:0:a9fe:a9fe]", "link-local"),
        ("https://[::ffff:0:6464:64c8]", "metadata"),
        ("https://[2001:0:102:304:0:fbfe:5601:5601]", "link-local"),  # Teredo: the client is 169.254.169.254
        ("https://[2001:0:102:304:8000:63bf:9b9b:9b37]", "metadata"),
        ("https://[2001:0:a9fe:a9fe:0:0:f5ff:fffe]", "link-local"),  # the server is
        ("https://[2001:0:102:304:0:0:1fff:fffe]", "multicast"),
        ("http://[::ffff:0:127.0.0.1]", "in the clear"),
        ("http://[64:ff9b::127.0.0.1]", "in the clear"),
        ("ftp://api.example.com", "must start with https://"),
        ("https://", "must start with https://"),
        ("https://[x", "not a URL"),
        ("https://x:y", "not a URL"),
        ("ht\ntps://api.example.com", "white space"),
        ("https://api.exam\tple.com", "white space"),
        ("https://api.example.com /", "white space"),
        ("https://api.example.com\\@x", "white space"),
        ("https://api.example.com\x00", "white space"),
        ("https://api.ex\u00e4mple.com", "white space"),
    ],
)
def test_others_are_refused(url, why):
    assert why in DEFAULT_RULES.refusal(url)


def test_http_may_be_allowed():
    assert EndpointRules(http=True).refusal("http://api.example.com") == ""
    assert "link-local" in EndpointRules(http=True).refusal("http://169.254.169.254")


def test_a_list_says_where_they_may_be():
    rules = parse_rules(["10.0.0.0/8", "api.example.com", "*.fleet.example.com"])
    assert rules.refusal("https://10.1.2.3") == ""
    assert rules.refusal("https://api.example.com") == ""
    assert "not among" in rules.refusal("https://192.168.0.1")
    # Names are judged by what they resolve to where there are networks, unless they are on the list themselves.
    assert rules.address_refusal("db.example.com", "10.9.9.9") == ""
    assert "not among" in rules.address_refusal("db.example.com", "192.168.0.1")
    assert rules.address_refusal("m1.fleet.example.com", "192.168.0.1") == ""
    assert "link-local" in rules.address_refusal("m1.fleet.example.com", "169.254.169.254")
    assert parse_rules(["169.254.7.0/24"]).refusal("https://169.254.7.1") == ""


def test_a_list_is_of_the_addresses_that_others_stand_for():
    rules = parse_rules(["10.0.0.0/8"])
    assert rules.refusal("https://[::ffff:0:10.1.2.3]") == ""
    assert "not among" in rules.refusal("https://[::ffff:0:192.168.0.1]")
    # Through Teredo one speaks to a server and to a client.
    assert rules.refusal("https://[2001:0:a01:203:0:0:f5fe:fdfc]") == ""
    assert "not among" in rules.refusal("https://[2001:0:102:304:0:0:f5fe:fdfc]")
    assert "not among" in rules.refusal("https://[2001:0:a01:203:0:0:3f57:fffe]")


def test_a_list_of_names_alone_refuses_other_names_at_once():
    rules = parse_rules(["*.example.com"])
    assert rules.refusal("https://api.example.com") == ""
    assert "not among the names" in rules.refusal("https://api.example.org")
    assert "not among the names" in rules.refusal("https://example.com")


@pytest.mark.parametrize("entry", ["", "*", "10.0.0.0/99", "https://x", "a b"])
def test_nonsense_in_the_list_is_refused(entry):
    with pytest.raises(ValueError, match="is not a network"):
        parse_rules([entry])


def test_a_transport_is_not_even_made_for_such_an_address():
    with pytest.raises(ConfigError, match="link-local"):
        HttpTransport(Connection("https://169.254.169.254", token="secret"), endpoints=DEFAULT_RULES)


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "hTTps"])
async def test_however_its_scheme_is_written_a_server_is_verified_by_the_authority_given(scheme, monkeypatch):
    """Not by the system's, which here knows the server, as it knows every public one."""
    own, others = EmbeddedServer(), EmbeddedServer()
    monkeypatch.setattr(
        aiohttp.connector,
        "_SSL_CONTEXT_VERIFIED",
        ssl.create_default_context(cadata=own.authority.certificate.decode()),
    )
    await own.start()
    target = Connection(f"{scheme}://127.0.0.1:{own.port}", token="secret", ca_data=others.authority.certificate)
    transport = HttpTransport(target, endpoints=DEFAULT_RULES)
    try:
        with pytest.raises(TransportError, match="certificate verify failed"):
            await transport.send(Request("GET", "/healthz", timeout=10))
    finally:
        await transport.close()
        await own.stop()


@pytest.mark.parametrize(
    "url",
    [
        *("ht\ntps://127.0.0.1", "https://127.0.0.1\t", "ws://127.0.0.1", "127.0.0.1"),
        *("https://127.0.0.1?", "https://127.0.0.1/#", "https://127.0.0.1/?x=1"),
    ],
)
def test_a_transport_is_made_for_plain_urls_only(url):
    with pytest.raises(ConfigError):
        HttpTransport(Connection(url, token="secret"))


async def test_what_a_name_resolves_to_is_judged_before_it_is_connected_to():
    rules = parse_rules(["10.0.0.0/8"])
    transport = HttpTransport(Connection("https://localhost:1", token="secret"), endpoints=rules)
    try:
        with pytest.raises(TransportError, match=r"localhost: .* is not among the addresses"):
            await transport.send(Request("GET", "/healthz", timeout=0.5))
    finally:
        await transport.close()


async def test_a_number_is_an_address_to_the_resolver():
    """169.254.169.254, written as no URL should."""
    resolver = GuardedResolver(DEFAULT_RULES)
    with pytest.raises(OSError, match="link-local"):
        await resolver.resolve("2852039166", 443)
    await resolver.close()
