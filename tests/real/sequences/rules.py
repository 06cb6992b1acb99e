"""What may differ between the embedded server and kube-apiserver, by the name docs/server.md has for it.

A rule takes out of both answers what it is about; everything else is compared. A rule that no longer changes anything is
deleted together with its entry.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from tests.real.sequences.steps import Step

__all__ = ["RULES", "Rule", "applied", "told"]


class Rule(msgspec.Struct, frozen=True):
    #: As in docs/server.md.
    name: str
    #: Changes an answer's trace in place.
    apply: Callable[[Step, dict[str, Any]], None]


def _nothing(step: Step, answer: dict[str, Any]) -> None:
    """What a trace leaves out everywhere, or a duel knows of."""


def _patch_texts(step: Step, answer: dict[str, Any]) -> None:
    """A patch that makes an object unreadable: the text shows the object or the patch, and Go's words for what is wrong."""
    body = answer.get("body")
    if step.method != "PATCH" or answer.get("code") != 422 or not isinstance(body, dict):
        return
    causes = (body.get("details") or {}).get("causes") or []
    if any(cause.get("field") == "patch" for cause in causes):
        body["message"] = ""
        for cause in causes:
            cause["message"] = ""


def _shown_types(step: Step, answer: dict[str, Any]) -> None:
    """What may not change is shown by Kubernetes as its internal types, whole or as a difference of lines."""
    body = answer.get("body")
    causes = (body.get("details") or {}).get("causes") or [] if isinstance(body, dict) else []
    for cause in causes:
        if cause.get("field") in ("spec", "spec.template", "spec.podFailurePolicy"):
            cause["message"] = _LONG.split(cause["message"], maxsplit=1)[0]
            body["message"] = body["message"].partition(": ")[0]


_LONG = re.compile(r'\n|\{"')
RULES: tuple[Rule, ...] = (
    Rule("managed-fields", _nothing),
    Rule("repeated-causes", _nothing),
    Rule("initial-bookmark", _nothing),
    Rule("waiting-circles", _nothing),
    Rule("unreadable-patches", _patch_texts),
    Rule("internal-types", _shown_types),
)


def applied(step: Step, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    for answer in answers:
        for rule in RULES:
            rule.apply(step, answer)
    return list(answers)


def told(step: Step, lines: list[str]) -> list[str]:
    return lines
