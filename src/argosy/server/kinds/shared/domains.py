"""Names that are built on domains: controllers' paths, CSI drivers, fully qualified names."""

from argosy.kube import names
from argosy.server.fielderrors import FieldError, invalid, required, too_long
from argosy.server.kinds.shared import meta_rules as rules

__all__ = ["csi_driver", "fully_qualified", "prefixed_path"]

MAX_CSI_DRIVER = 63
PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def prefixed_path(value: str, path: str) -> list[FieldError]:
    """`acme.io/foo`: the owner's domain, and a name within it."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = rules.messages(host, path, names.dns_subdomain_errors(host))
    if names.http_path_errors(rest):
        errors.append(invalid(path, rest, f"Invalid path (regex used for validation is '{PATH}')"))
    return errors


def fully_qualified(value: str, path: str) -> list[FieldError]:
    """A domain name of at least two segments; the trailing dot of the root is allowed."""
    if not value:
        return [required(path)]
    value = value.removesuffix(".")
    errors = rules.messages(value, path, names.dns_subdomain_errors(value))
    if errors:
        return errors
    if "." not in value:
        return [invalid(path, value, "should be a domain with at least two segments separated by dots")]
    return [error for label in value.split(".") for error in rules.messages(label, path, names.dns_label_errors(label))]


def csi_driver(value: str, path: str) -> list[FieldError]:
    """Like a subdomain, but upper case counts as lower."""
    if not value:
        return [required(path)]
    errors = [too_long(path, MAX_CSI_DRIVER)] if len(value) > MAX_CSI_DRIVER else []
    return errors + rules.messages(value, path, names.dns_subdomain_errors(value.lower()))
