"""Field errors: an error in one field of an object, in kube-apiserver's words.

Validators return lists of these; `status.py` turns a list into the 422 Status with its causes.
"""

from typing import Any

import msgspec
import orjson

__all__ = [
    "OMITTED",
    "FieldError",
    "duplicate",
    "forbidden",
    "invalid",
    "not_found",
    "not_supported",
    "required",
    "too_long",
    "too_many",
]

#: Kubernetes' cause reasons and the words in front of the value.
_WORDS = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueNotFound": "Not found",
    "FieldValueTypeInvalid": "Invalid value",
}
_WITHOUT_VALUE = {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"}


#: As the value of an `invalid`: no value is shown, the detail suffices.
OMITTED = msgspec.UNSET


class FieldError(msgspec.Struct, frozen=True):
    reason: str
    field: str
    value: Any = None
    detail: str = ""

    @property
    def message(self) -> str:
        """The cause's message, without the field."""
        text = _WORDS[self.reason]
        if self.reason not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as kube-apiserver prints it in messages: strings quoted, numbers bare, the rest as JSON."""
    if value is None:
        return "null"
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, "", detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, value, detail)


def not_supported(field: str, value: Any, supported: list[str]) -> FieldError:
    quoted = ", ".join(f'"{s}"' for s in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {quoted}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, "", detail)


def too_long(field: str, maximum: int) -> FieldError:
    return FieldError("FieldValueTooLong", field, "", f"may not be more than {maximum} bytes")


def too_many(field: str, count: int, maximum: int) -> FieldError:
    return FieldError("FieldValueTooMany", field, count, f"must have at most {maximum} items")


def not_found(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", field, value)
