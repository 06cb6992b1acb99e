"""The client configuration of webhooks: URLs and service references of admission webhooks and CRD conversion."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from argosy.kube import names
from argosy.server.fielderrors import FieldError, invalid, required

__all__ = ["default_client_config", "validate_client_config"]

FORM = "; desired format: https://host[/path]"


def default_client_config(config: dict[str, Any]) -> None:
    service = config.get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


def validate_client_config(config: Mapping[str, Any], path: str) -> list[FieldError]:
    """Exactly one of a URL and a service."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url(url, f"{path}.url")
    return _service(service or {}, f"{path}.service")


def _url(url: str, path: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
        user, _, _ = parts.netloc.rpartition("@")
        host = parts.hostname or ""
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{FORM}")]
    errors = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{FORM}"))
    if not host:
        errors.append(invalid(path, host, f"host must be specified{FORM}"))
    if user:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service(service: Mapping[str, Any], path: str) -> list[FieldError]:
    # Each is reported under the other's name, as Kubernetes' own check does by mistake.
    swapped = {"namespace": "name", "name": "namespace"}
    errors = [required(f"{path}.{shown}") for field, shown in swapped.items() if not service.get(field)]
    port = service.get("port") or 0
    wrong = names.port_number_errors(port)
    if wrong:
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {', '.join(wrong)}"))
    return errors + _url_path(service.get("path") or "", f"{path}.path")


def _url_path(text: str, path: str) -> list[FieldError]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for i, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, text, f"segment[{i}] may not be empty"))
            continue
        errors += [invalid(path, text, f"segment[{i}]: {wrong}") for wrong in names.dns_subdomain_errors(step)]
    return errors
