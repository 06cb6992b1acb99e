"""Connecting to members: from connection values to a client. A function value, so that tests can connect otherwise."""

from collections.abc import Callable

from argosy.fleet.credentials import Connection, CredentialsError
from argosy.kube import config
from argosy.kube.answers import DEFAULT, AnswerLimits
from argosy.kube.challenge import Challenge
from argosy.kube.client import Client
from argosy.kube.endpoints import DEFAULT_RULES, EndpointRules
from argosy.kube.http import HttpTransport

__all__ = ["Connector", "http_connector"]

#: Makes a client for a member of this name, whose connections first answer the challenge, if there is one. Raises
#: CredentialsError if the credentials cannot be used.
Connector = Callable[[str, Connection, Challenge | None], Client]


def http_connector(
    *,
    qps: float = 500.0,
    burst: int = 1000,
    user_agent: str = "argosy",
    endpoints: EndpointRules = DEFAULT_RULES,
    limits: AnswerLimits = DEFAULT,
    longest_hold: float = 60.0,
) -> Connector:
    """Clients over HTTP(S), each with its own pool and rate limit; members' audit logs show our user agent.

    At most `limits` is read of an answer. After a 429 all requests to the member wait.
    """

    def connect(name: str, connection: Connection, challenge: Challenge | None) -> Client:
        target = config.Connection(
            server=connection.server,
            ca_data=connection.ca_data,
            client_certificate=connection.cert_data,
            client_key=connection.key_data,
            token=connection.token.decode(errors="replace"),
            insecure=connection.insecure,
        )
        try:
            transport = HttpTransport(
                target,
                qps=qps,
                burst=burst,
                user_agent=user_agent,
                challenge=challenge,
                endpoints=endpoints,
                limits=limits,
                longest_hold=longest_hold,
            )
        except config.ConfigError as error:
            raise CredentialsError(str(error)) from None
        return Client(transport)

    return connect
