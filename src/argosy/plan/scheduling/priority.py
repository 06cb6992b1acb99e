"""Priority: which PriorityClass an object's pods have. What that means for the order of things is `failover.rank`."""

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
    """By name; empty for what names none and for what runs no pods."""
    try:
        return decode(source, _Workload).spec.template.spec.priority_class_name
    except DecodeError:
        return ""
