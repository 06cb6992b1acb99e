"""Priority: which PriorityClass an object's pods have. `failover.rank` makes an order of priorities."""

import msgspec

from argosy.kube.objects import DecodeError, decode

__all__ = ["priority_class_of"]


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    priority_class_name: str = ""


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _Workload(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


def priority_class_of(source: bytes) -> str:
    """The name; empty for an object that names none or runs no pods."""
    try:
        return decode(source, _Workload).spec.template.spec.priority_class_name
    except DecodeError:
        return ""
