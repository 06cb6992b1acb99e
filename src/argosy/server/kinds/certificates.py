"""certificates.k8s.io/v1: CertificateSigningRequests, as stored objects: approval is a write, and nothing is signed here."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from cryptography import x509

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.kube.timestamps import now
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

#: The requester: set by the server from the request's user, never by the client.
REQUESTER = ("username", "uid", "groups", "extra")
DECISIONS = ("Approved", "Denied")
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
MIN_SECONDS = 600
MAX_SIGNER_PATH = 253
USAGES = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
]


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            SigningRequestStrategy,
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            namespaced=False,
            short_names=("csr",),
            subresources=frozenset({"approval", "status"}),
        )
    ]


class SigningRequestStrategy(BuiltinStrategy):
    generation = False
    name_rule = "path"
    selectable = {"spec.signerName": lambda obj: str((obj.get("spec") or {}).get("signerName") or "")}  # noqa: RUF012

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        for field in REQUESTER:
            obj["spec"].pop(field, None)
        obj["status"] = {}

    def prepare_update(self, new: Object, old: Object) -> None:
        """A request is immutable."""
        super().prepare_update(new, old)
        new["spec"] = old["spec"]

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _request(spec.get("request"))
        usages = spec.get("usages") or []
        errors += [] if usages else [required("spec.usages")]
        for i, usage in enumerate(usages):
            if usage not in USAGES:
                errors.append(not_supported(f"spec.usages[{i}]", usage, USAGES))
        errors += rules.unique(usages, "spec.usages")
        errors += _signer(spec.get("signerName") or "")
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < MIN_SECONDS:
            detail = f"may not specify a duration less than {MIN_SECONDS} seconds (10 minutes)"
            errors.append(invalid("spec.expirationSeconds", seconds, detail))
        return errors + _conditions(_conditions_of(obj))

    def prepare_status(self, new: Object, old: Object) -> None:
        super().prepare_status(new, old)
        _fill_times(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        errors = _conditions(_conditions_of(new))
        before, after = _decided(old), _decided(new)
        for kind in (*DECISIONS, "Failed"):
            if before.get(kind, 0) > after.get(kind, 0):
                errors.append(forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"'))
        return errors + self._decisions(before, after)

    def _decisions(self, before: dict[str, int], after: dict[str, int]) -> list[FieldError]:
        """A signer does not approve: that is done through /approval, which is a separate right."""
        return [
            forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
            for kind in DECISIONS
            if after.get(kind, 0) > before.get(kind, 0)
        ]


class ApprovalStrategy(SigningRequestStrategy):
    """/approval: only the conditions change."""

    def prepare_update(self, new: Object, old: Object) -> None:
        conditions = _conditions_of(new)
        super().prepare_update(new, old)
        new["status"] = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions
        _fill_times(new, old)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_status(new, old)

    def _decisions(self, before: dict[str, int], after: dict[str, int]) -> list[FieldError]:
        return []


def _request(request: str | None) -> list[FieldError]:
    path, wrong = "spec.request", "PEM block type must be CERTIFICATE REQUEST"
    try:
        pem = base64.b64decode(request or "", validate=True)
    except (binascii.Error, ValueError):
        return [invalid(path, request, wrong)]
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        return [invalid(path, request, wrong)]
    try:
        x509.load_pem_x509_csr(pem)
    except ValueError as error:
        return [invalid(path, request, str(error))]
    return []


def _signer(name: str) -> list[FieldError]:
    path = "spec.signerName"
    if name == LEGACY_SIGNER:
        return [invalid(path, name, "the legacy signerName is not allowed via this API version")]
    if not name:
        return [required(path)]
    domain, _, rest = name.partition("/")
    if not rest or "/" in rest:
        return [invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
    errors = rules.messages(domain, path, names.dns_subdomain_errors(domain))
    if not errors and "." not in domain:
        errors = [invalid(path, domain, "should be a domain with at least two segments separated by dots")]
    for part in rest.split("."):
        errors += rules.messages(part, path, names.dns_label_errors(part.lower()))
    if len(rest) > MAX_SIGNER_PATH:
        errors.append(invalid(path, rest, f"must be no more than {MAX_SIGNER_PATH} characters"))
    return errors


def _conditions_of(obj: Object) -> list[Mapping[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def _fill_times(new: Object, old: Object) -> None:
    """A condition without times gets the present, or keeps the time since which it has its status."""
    since = {(c.get("type"), c.get("status")): c.get("lastTransitionTime") for c in _conditions_of(old)}
    for condition in (new.get("status") or {}).get("conditions") or ():
        kept = since.get((condition.get("type"), condition.get("status")))
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now()
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or kept or now()


def _decided(obj: Object) -> dict[str, int]:
    counts: dict[str, int] = {}
    for condition in _conditions_of(obj):
        kind = condition.get("type") or ""
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _conditions(conditions: list[Mapping[str, Any]]) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        path = f"status.conditions[{i}]"
        kind, status = condition.get("type") or "", condition.get("status") or ""
        allowed = ["True"] if kind in (*DECISIONS, "Failed") else ["False", "True", "Unknown"]
        errors += [] if kind else [required(f"{path}.type")]
        errors += rules.one_of(status, f"{path}.status", allowed)
        if kind in DECISIONS and any(other in seen for other in DECISIONS if other != kind):
            detail = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid("status.conditions", kind, detail))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors
