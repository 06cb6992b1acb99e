"""TLS and proxy settings of a connection: values for the HTTP transport, made from memory."""

import ipaddress
import os
import ssl
import tempfile
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from argosy.kube.config import ConfigError, Connection

__all__ = ["client_context", "proxy_for"]


def client_context(connection: Connection, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """What to trust (the connection's CA, else the system's) and which certificate to show. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca_data:
        try:
            context.load_verify_locations(cadata=connection.ca_data.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError):
            raise ConfigError(f"{connection.server}: the certificate authority is not PEM certificates") from None
    else:
        context.load_default_certs()
    if certificate or key:
        _load_certificate(context, connection.server, certificate, key)
    return context


def _load_certificate(context: ssl.SSLContext, server: str, certificate: bytes, key: bytes) -> None:
    if not certificate or not key:
        raise ConfigError(f"{server}: a client certificate needs both the certificate and its key")
    # ssl reads certificates from files only. mkstemp makes it readable by us alone; it is gone before anybody waits.
    handle, path = tempfile.mkstemp(prefix="argosy-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        # Without a password callback OpenSSL would ask on the terminal for an encrypted key's.
        context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError, OSError):
        raise ConfigError(f"{server}: the client certificate and key are not PEM or do not belong together") from None
    finally:
        os.unlink(path)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def proxy_for(connection: Connection) -> str | None:
    """The connection's own proxy, else the environment's (HTTPS_PROXY, NO_PROXY), never for the loopback."""
    proxy = connection.proxy
    if not proxy:
        parts = urlsplit(connection.server)
        host = parts.hostname or ""
        proxies = getproxies()
        if _is_loopback(host) or proxy_bypass(f"{host}:{parts.port or 443}"):
            return None
        proxy = proxies.get(parts.scheme, "")
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(f"{connection.server}: the proxy {_without_password(proxy)} is neither http nor https")
    return proxy or None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without_password(url: str) -> str:
    return url.rpartition("@")[2]
