"""Endpoints: which addresses we may connect to because of a URL in an object. Rules as a value; nothing here opens a
connection.

A URL in an object is written by users who may have fewer rights than we do: it must not lead to what only our machine can
reach. Link-local addresses are always refused (cloud metadata services give out credentials there), and plain HTTP can be read
and changed on the way. Names in URLs are checked here, and the addresses they resolve to right before connecting (`resolver`).
"""

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

__all__ = ["DEFAULT_RULES", "EndpointRules", "canonical", "parse_rules"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Cloud services for their own machines that are not at link-local addresses.
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
#: IPv4 addresses embedded in IPv6 (RFC 6052, RFC 8215, RFC 4291, RFC 2765); ipaddress knows mapped ones, 6to4 and Teredo.
_TRANSLATED = tuple(
    ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")
)
#: Old programs read a name as an address by its last part.
_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)\.?", re.IGNORECASE)


_START = "it must start with https:// (or http://) and name a host"


def canonical(url: str) -> str:
    """The URL as every reader understands it: scheme in lower case, without a trailing slash.

    Raises ValueError for characters that readers treat differently, and if no path can be appended.
    """
    if not url.isascii() or any(each <= " " or each in "\\\x7f" for each in url):
        raise ValueError("it must not have white space, control characters, backslashes or letters beyond ASCII in it")
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("https", "http") or not rest:
        raise ValueError(_START)
    if "?" in rest or "#" in rest:  # even empty ones, which would swallow the appended path
        raise ValueError("it must not have a query or a fragment")
    return f"{scheme.lower()}://{rest.rstrip('/')}"


class EndpointRules(msgspec.Struct, frozen=True):
    """What is allowed besides; an empty list allows everything that is not forbidden."""

    networks: tuple[Network, ...] = ()
    #: `name`, or `.suffix` for everything below it.
    names: tuple[str, ...] = ()
    #: http:// to other machines.
    http: bool = False

    def refusal(self, url: str) -> str:
        """Why nothing is sent to a URL, whatever its name resolves to; empty if allowed."""
        try:
            url = canonical(url)
        except ValueError as error:
            return str(error)
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            return "it is not a URL"
        if not host:
            return _START
        if parts.username is not None or parts.password is not None:
            return "it must not have a user or a password in it"
        address = _address(host)
        if address is None and _NUMBER.fullmatch(host):
            return f"{host} is not how an address is written"
        if parts.scheme == "http" and not self.http and not _is_this_machine(host, address):
            return "http:// is sent in the clear: use https://, or allow it with --allow-http-endpoints"
        return self.address_refusal(host, str(address)) if address is not None else self._name_refusal(host)

    def address_refusal(self, host: str, text: str) -> str:
        """Why a resolved address is not connected to; empty if allowed."""
        meant = _meant(ipaddress.ip_address(text.partition("%")[0]))
        unlisted = [address for address in meant if not any(address in network for network in self.networks)]
        if not unlisted:
            return ""
        if any(_is_no_server(address) for address in unlisted):
            return f"{text} is not an allowed address for a server (link-local, multicast or a cloud's metadata)"
        if (self.networks or self.names) and not self._is_named(host):
            return f"{text} is not among the addresses of --allowed-endpoints"
        return ""

    def _name_refusal(self, host: str) -> str:
        if self.names and not self.networks and not self._is_named(host):
            return f"{host} is not among the names of --allowed-endpoints"
        return ""

    def _is_named(self, host: str) -> bool:
        host = host.rstrip(".").lower()
        return any(host.endswith(name) if name.startswith(".") else host == name for name in self.names)


#: Everything except what is always refused.
DEFAULT_RULES = EndpointRules()


def parse_rules(allowed: Iterable[str], *, http: bool = False) -> EndpointRules:
    """From `10.0.0.0/8`, `api.example.com` and `*.example.com`. Raises ValueError with the first invalid one."""
    networks: list[Network] = []
    names: list[str] = []
    for text in allowed:
        entry = text.strip().lower()
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
            continue
        except ValueError:
            name = entry.removeprefix("*")
        if not name.strip(".") or set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-."):
            raise ValueError(
                f"{text!r} is not a network (10.0.0.0/8), name, or name with a star in front (*.example.com)"
            )
        names.append(name)
    return EndpointRules(tuple(networks), tuple(names), http)


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _meant(address: Address) -> tuple[Address, ...]:
    """The addresses that this one leads to: itself, or the IPv4 addresses embedded in it."""
    if not isinstance(address, ipaddress.IPv6Address):
        return (address,)
    if address.teredo is not None:  # its server and its client
        return address.teredo
    translated = address.ipv4_mapped or address.sixtofour
    # The first addresses of ::/96 are not IPv4: unspecified, and the loopback.
    if translated is None and int(address) > 1 and any(address in network for network in _TRANSLATED):
        translated = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return (address if translated is None else translated,)


def _is_no_server(address: Address) -> bool:
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA


def _is_this_machine(host: str, address: Address | None) -> bool:
    """A translated address leads over a translator; a mapped one is only another notation."""
    if address is None:
        return host == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
