"""Connecting to members: from connection values to a client. One function value, so that tests may connect otherwise."""

from collections.abc import Callable

from argosy.fleet.credentials import Connection, CredentialsError
from argosy.kube import config
from argosy.kube.client import Client
from argosy.kube.http import HttpTransport

__all__ = ["Connector", "http_connector"]

#: Makes a client for a member of this name. Raises CredentialsError when the credentials cannot be used.
Connector = Callable[[str, Connection], Client]


def http_connector(*, qps: float = 500.0, burst: int = 1000, user_agent: str = "argosy") -> Connector:
    """Clients over HTTP(S), each with its own pool and rate limit; members' audit logs know us by the user agent."""

    def connect(name: str, connection: Connection) -> Client:
        target = config.Connection(
            server=connection.server,
            ca_data=connection.ca_data,
            client_certificate=connection.cert_data,
            client_key=connection.key_data,
            token=connection.token.decode(errors="replace"),
            insecure=connection.insecure,
        )
        try:
            return Client(HttpTransport(target, qps=qps, burst=burst, user_agent=user_agent))
        except config.ConfigError as error:
            raise CredentialsError(str(error)) from None

    return connect
