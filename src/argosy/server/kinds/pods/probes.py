"""Probes and life-cycle hooks of containers: what is called, and how often."""

from typing import Any

from argosy.kube import names
from argosy.server.fielderrors import FieldError, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared.meta_rules import messages, nonnegative, port_num_or_name, port_number

__all__ = ["validate_lifecycle", "validate_probes"]

Object = dict[str, Any]

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_NUMBERED = [f"RTMIN+{n}" for n in range(1, 16)] + [f"RTMAX-{n}" for n in range(1, 15)]
_NAMED = (
    *("ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL"),
    *("PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1"),
    *("USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX"),
)
_SIGNALS = sorted(f"SIG{name}" for name in (*_NAMED, *_NUMBERED))
_STOP_SIGNALS = {"linux": _SIGNALS, "windows": ["SIGKILL", "SIGTERM"]}


def validate_probes(container: Object, path: str) -> list[FieldError]:
    errors = []
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            errors += _probe(container[name], f"{path}.{name}", readiness=name == "readinessProbe")
    return errors


def _probe(probe: Object, path: str, *, readiness: bool) -> list[FieldError]:
    errors = _handler(probe, ("exec", "httpGet", "tcpSocket", "grpc"), path, None)
    for name in _COUNTS:
        errors += nonnegative(probe.get(name) or 0, f"{path}.{name}")
    grace = probe.get("terminationGracePeriodSeconds")
    at = f"{path}.terminationGracePeriodSeconds"
    if grace is not None and grace <= 0:
        errors.append(invalid(at, grace, "must be greater than 0"))
    if readiness and grace is not None:
        errors.append(invalid(at, grace, "must not be set for readinessProbes"))
    if not readiness and probe.get("successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1"))
    return errors


def validate_lifecycle(lifecycle: Object, path: str, spec: Object) -> list[FieldError]:
    """Hooks and stop signal of a container of `spec`, whose grace period and system they depend on."""
    errors = []
    grace = spec.get("terminationGracePeriodSeconds")
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            errors += _handler(lifecycle[name], ("exec", "httpGet", "tcpSocket", "sleep"), f"{path}.{name}", grace)
    signal = lifecycle.get("stopSignal")
    if signal is not None:
        errors += _stop_signal(signal, f"{path}.stopSignal", (spec.get("os") or {}).get("name"))
    return errors


def _stop_signal(signal: str, path: str, system: str | None) -> list[FieldError]:
    if system is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    supported = _STOP_SIGNALS.get(system)
    return [] if supported is None or signal in supported else [not_supported(path, signal, supported)]


def _handler(handler: Object, kinds: tuple[str, ...], path: str, grace: int | None) -> list[FieldError]:
    used = [kind for kind in kinds if handler.get(kind) is not None]
    if not used:
        return [required(path, "must specify a handler type")]
    first, *more = used
    errors = _action(first, handler[first], f"{path}.{first}", grace)
    return errors + [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in more]


def _action(kind: str, action: Object, path: str, grace: int | None) -> list[FieldError]:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{path}.command")]
    if kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace is None or 0 <= seconds <= grace:
            return []
        return [invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")]
    if kind == "grpc":
        return port_number(action.get("port", 0), f"{path}.port")
    errors = port_num_or_name(action.get("port", 0), f"{path}.port")
    if kind == "httpGet":
        scheme = action.get("scheme", "")
        if scheme not in ("HTTP", "HTTPS"):
            errors.append(not_supported(f"{path}.scheme", scheme, ["HTTP", "HTTPS"]))
        for header in action.get("httpHeaders") or ():
            name = header.get("name", "")
            errors += messages(name, f"{path}.httpHeaders", names.http_header_name_errors(name))
    return errors
