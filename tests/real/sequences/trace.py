"""Traces: an answer without what each server makes up by itself, so that two of them can be compared.

uids, versions, generated names and addresses become labels, numbered in the order they are first seen: the same label stands
for the same value all through a side's trace, so a version that should have changed and did not is a difference.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.server.replay import Answer, warnings

__all__ = ["Trace"]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_NUMBER = re.compile(r"\b\d+\b")
#: As the generator asks for them; an invalid object has its name made up as well.
_GENERATED = re.compile(r"\b((?:g\d+-|other-)(?:[0-9a-f]{8}-)?)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
#: A service that got no address is told which one it did not get.
_RECORD = re.compile(r'(IPAddress\.networking\.k8s\.io )"[0-9a-f.:]+"')
#: Of an object that was never seen, which is the same on both.
_UNSEEN = "00000000-0000-4000-8000-000000000000"
_ADDRESSES = {"clusterIP", "nodePort", "healthCheckNodePort"}


class Trace:
    """One side's; answers and events are given in the same order on both."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], str] = {}

    def answer(self, answer: Answer) -> dict[str, Any]:
        body = answer.body if answer.body is not None else answer.text
        return {
            "code": answer.code,
            "type": answer.headers.get("Content-Type"),
            "retry": answer.headers.get("Retry-After"),
            "warnings": sorted(self._text(text) for text in warnings(answer)),
            "body": self._body(body),
        }

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] != "BOOKMARK":
            return {"type": event["type"], "object": self._body(event["object"])}
        # Kubernetes fills the object of a bookmark with the zero values of its type.
        return {"type": "BOOKMARK", "kind": event["object"]["kind"]}

    def _body(self, body: Any) -> Any:
        if not isinstance(body, dict):
            return self._value(body)
        if body.get("kind") == "Status":
            return self._status(body)
        if isinstance(body.get("items"), list):
            return self._value({**body, "metadata": _list_metadata(body["metadata"])})
        return self._value(body)

    def _status(self, status: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = self._value(status)
        given = (shown.get("details") or {}).get("causes") or []
        # Maps have no order in Go, and what is checked by two parts of kube-apiserver is told twice.
        causes = [cause for index, cause in enumerate(given) if cause not in given[:index]]
        if causes:
            shown["details"]["causes"] = sorted(causes, key=lambda cause: sorted(cause.items()))
        if len(causes) > 1:
            shown["message"] = shown["message"].partition(": ")[0]
        if "message" in shown:
            shown["message"] = _NUMBER.sub(self._version_in_text, shown["message"])
        return shown

    def _value(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            return {self._text(key): self._field(key, one) for key, one in value.items() if key != "managedFields"}
        if isinstance(value, list):
            return [self._value(one, field) for one in value]
        if field in _ADDRESSES and value not in ("None", ""):
            return self._label(field, str(value))
        return self._text(value) if isinstance(value, str) else value

    def _field(self, key: str, value: Any) -> Any:
        if key == "resourceVersion" and isinstance(value, str):
            return self._label("version", value)
        if key == "clusterIPs" and isinstance(value, list):
            return [self._value(one, "clusterIP") for one in value]
        if key == "ca.crt":
            return "<certificate>"
        return self._value(value, key)

    def _text(self, text: str) -> str:
        if _TIME.fullmatch(text) and abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(days=1):
            return "<now>"
        text = _RECORD.sub(r"\1<address>", _GENERATED.sub(r"<name \1>", text))
        return _UUID.sub(lambda found: found[0] if found[0] == _UNSEEN else self._label("uid", found[0]), text)

    def _label(self, what: str, value: str) -> str:
        count = sum(1 for kind, _ in self._labels if kind == what)
        return self._labels.setdefault((what, value), f"<{what} {count + 1}>")

    def _version_in_text(self, found: re.Match[str]) -> str:
        return self._labels.get(("version", found[0]), found[0])


def _list_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Others write too on a whole control plane: the version of a list is not that of the last write we know of."""
    return {key: "<some>" if key in ("resourceVersion", "continue") else value for key, value in metadata.items()}
