"""Paths of files inside volumes: relative, without steps back, and not the names Kubernetes keeps for itself."""

from argosy.server.fielderrors import FieldError, invalid

__all__ = ["descending", "file_mode", "no_backsteps", "not_reserved"]

MAX_MODE = 0o777


def no_backsteps(path: str, at: str) -> list[FieldError]:
    return [invalid(at, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending(path: str, at: str) -> list[FieldError]:
    errors = [invalid(at, path, "must be a relative path")] if path.startswith("/") else []
    return errors + no_backsteps(path, at)


def not_reserved(path: str, at: str) -> list[FieldError]:
    """Names that start with two dots are reserved for the kubelet in projected volumes."""
    errors = descending(path, at)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(at, path, "must not start with '..'"))
    return errors


def file_mode(mode: int | None, at: str) -> list[FieldError]:
    if mode is None or 0 <= mode <= MAX_MODE:
        return []
    return [invalid(at, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
