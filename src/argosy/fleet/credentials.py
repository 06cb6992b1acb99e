"""How to reach a member: connection values from a FederatedCluster and its secret.

Values only; the transport opens the connection. There are two ways to authenticate: the user's own credentials ("bootstrap":
a token, a certificate pair, or both) for joining, and the service account token created while joining.
"""

from collections.abc import Mapping

import msgspec

from argosy.api import keys
from argosy.api.clusters import FederatedCluster

__all__ = [
    "Connection",
    "CredentialsError",
    "CredentialsWithheld",
    "connection_from_secret",
    "credentials_from_secret",
    "server_of",
]

_MISSING = '"{key}" data is missing from secret'
_MISSING_CA = '"{key}" data is missing from secret and insecure is false'
_MISSING_AUTH = (
    "the client authentication information is missing from secret, "
    "at least token or (certificate, key) information is required"
)


class CredentialsError(ValueError):
    """The secret lacks what is needed; the message names the key and never a value."""


class CredentialsWithheld(CredentialsError):
    """The credentials exist but must not be sent to this server."""


class Connection(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The address of a member's API server, and how to authenticate there. Empty = not used. Never printed with its secrets."""

    server: str = ""
    insecure: bool = False
    ca_data: bytes = b""
    cert_data: bytes = b""
    key_data: bytes = b""
    token: bytes = b""

    def __repr__(self) -> str:
        return f"Connection(server={self.server!r}, insecure={self.insecure})"


def connection_from_secret(
    cluster: FederatedCluster, data: Mapping[str, bytes], *, bootstrap: bool | None = None
) -> Connection:
    """The connection to a cluster, given its secret's decoded data. Raises CredentialsError.

    `bootstrap` is True while joining, when the service account does not exist yet; otherwise the cluster's spec decides.
    """
    if not cluster.spec.api_endpoint:
        raise CredentialsError("spec.apiEndpoint is empty")
    use_bootstrap = not cluster.spec.use_service_account if bootstrap is None else bootstrap
    credentials = credentials_from_secret(data, insecure=cluster.spec.insecure, bootstrap=use_bootstrap)
    return msgspec.structs.replace(credentials, server=server_of(cluster))


def credentials_from_secret(data: Mapping[str, bytes], *, insecure: bool, bootstrap: bool) -> Connection:
    """The authentication part of a connection, without the server. Raises CredentialsError."""
    ca_data = b"" if insecure else data.get(keys.SECRET_CA, b"")
    if not insecure and not ca_data:
        raise CredentialsError(_MISSING_CA.format(key=keys.SECRET_CA))
    if not bootstrap:
        token = data.get(keys.SECRET_SERVICE_ACCOUNT_TOKEN, b"")
        if not token:
            raise CredentialsError(_MISSING.format(key=keys.SECRET_SERVICE_ACCOUNT_TOKEN))
        return Connection(insecure=insecure, ca_data=ca_data, token=token)
    token = data.get(keys.SECRET_BOOTSTRAP_TOKEN, b"")
    cert_data = data.get(keys.SECRET_CLIENT_CERTIFICATE, b"")
    key_data = data.get(keys.SECRET_CLIENT_KEY, b"")
    if not token and not (cert_data and key_data):
        raise CredentialsError(_MISSING_AUTH)
    if not (cert_data and key_data):
        cert_data = key_data = b""
    return Connection(insecure=insecure, ca_data=ca_data, cert_data=cert_data, key_data=key_data, token=token)


def server_of(cluster: FederatedCluster) -> str:
    """Hosts and host:port pairs mean HTTPS: credentials are never sent unencrypted unless the URL says so.

    The scheme is in lower case. The transport checks whether it is a valid URL.
    """
    scheme, mark, rest = cluster.spec.api_endpoint.strip().rstrip("/").partition("://")
    return f"{scheme.lower()}://{rest}" if mark else f"https://{scheme}"
