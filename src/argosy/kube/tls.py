"""TLS and proxy settings of a connection: values for the HTTP transport, made from memory; and what TLS errors mean."""

import datetime
import ipaddress
import os
import ssl
import tempfile
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from argosy.kube import clock
from argosy.kube.config import Connection
from argosy.kube.credentials import ConfigError

__all__ = ["client_context", "expired", "proxy_for", "tls_failure"]

_MEANINGS = {
    "CERTIFICATE_VERIFY_FAILED": "certificate verify failed",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; is the URL to start with http://?",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it does not accept the client certificate, which has expired",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not accept the client certificate, whose authority it does not know",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept the client certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the client certificate",
}


def client_context(connection: Connection, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """The trusted CAs (the connection's, else the system's) and the client certificate. Raises ConfigError."""
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
    # ssl reads certificates from files only. mkstemp makes it readable only by us; it is deleted before any await.
    handle, path = tempfile.mkstemp(prefix="argosy-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        # Without a password callback OpenSSL would prompt on the terminal for an encrypted key.
        context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError, OSError):
        raise ConfigError(f"{server}: the client certificate and key are not PEM or do not belong together") from None
    finally:
        os.unlink(path)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def tls_failure(error: ssl.SSLError) -> str:
    """One line for users."""
    meaning = _MEANINGS.get(error.reason or "", "")
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message.rstrip('.')}"
    return meaning or f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()}"


def expired(certificate: bytes) -> datetime.datetime | None:
    """When a certificate expired; None if it has not, or cannot be read."""
    if not certificate:
        return None
    # A heavy import, needed only after a server has refused us.
    from cryptography import x509

    try:
        end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return None
    return end if end < clock.now() else None


def proxy_for(connection: Connection) -> str | None:
    """The connection's own proxy, else the environment's (HTTPS_PROXY, NO_PROXY), never for the loopback."""
    proxy = connection.proxy
    if not proxy:
        parts = urlsplit(connection.server)
        host = parts.hostname or ""
        proxies = getproxies()
        if (
            _is_loopback(host)
            or _is_in_ranges(host, proxies.get("no", ""))
            or proxy_bypass(f"{host}:{parts.port or 443}")
        ):
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


def _is_in_ranges(host: str, no_proxy: str) -> bool:
    """Whether an address is in one of NO_PROXY's ranges (10.0.0.0/8), which Go supports and Python does not."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for entry in no_proxy.split(","):
        try:
            if "/" in entry and address in ipaddress.ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def _without_password(url: str) -> str:
    return url.rpartition("@")[2]
