"""Options of the commands that run controllers: where members and webhooks may be."""

from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.kube.endpoints import EndpointRules

__all__ = ["AllowHttpEndpoints", "AllowedEndpoints", "arguments", "rules"]

AllowedEndpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-endpoints",
        metavar="NETWORK|NAME",
        help="Allowed addresses of members and webhooks: 10.0.0.0/8, api.example.com or *.example.com; repeatable, or with "
        "commas. Default: any but link-local addresses.",
    ),
]
AllowHttpEndpoints = Annotated[
    bool,
    typer.Option("--allow-http-endpoints", help="Allow http:// to members and webhooks on other machines."),
]


def rules(allowed: list[str] | None, http: bool) -> "EndpointRules":
    from argosy.kube.endpoints import parse_rules

    entries = [entry for text in allowed or () for entry in text.split(",") if entry.strip()]
    try:
        return parse_rules(entries, http=http)
    except ValueError as error:
        raise Failure(f"--allowed-endpoints: {error}", code=2) from None


def arguments(allowed: list[str] | None, http: bool) -> list[str]:
    """As options of a command line."""
    given = [part for text in allowed or () for part in ("--allowed-endpoints", text)]
    return [*given, "--allow-http-endpoints"] if http else given
