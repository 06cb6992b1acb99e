"""Image references in their parts: `[registry/]repository[:tag][@digest]`."""

import re
from typing import Final, NamedTuple

__all__ = ["COMPONENTS", "ImageReference", "ImageReferenceError", "parse"]

_TAG: Final = r"\w[\w.-]{0,127}"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PATH: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME: Final = rf"(?:{_DOMAIN}/)?{_PATH}(?:/{_PATH})*"
_REFERENCE: Final = re.compile(rf"({_NAME})(?::({_TAG}))?(?:@({_DIGEST}))?", re.ASCII)
_CHECKED: Final = {"tag": re.compile(_TAG, re.ASCII), "digest": re.compile(_DIGEST, re.ASCII)}
_LONGEST_NAME: Final = 255

#: The parts, as policies name them.
COMPONENTS: Final = {"Registry": "registry", "Repository": "repository", "Tag": "tag", "Digest": "digest"}


class ImageReferenceError(ValueError):
    """The message names the part and never quotes what was found, which may be a secret."""


class ImageReference(NamedTuple):
    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def having(self, part: str, value: str) -> "ImageReference":
        """With this value of the part; an empty one removes it. Raises ImageReferenceError if it cannot be one."""
        form = _CHECKED.get(part)
        if value and form is not None and not form.fullmatch(value):
            raise ImageReferenceError(f"the new value is no {part}")
        return self._replace(**{part: value})

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> ImageReference:
    """Raises ImageReferenceError. What stands before the first slash is a registry only if it looks like a host."""
    found = _REFERENCE.fullmatch(text)
    if found is None or len(found[1]) > _LONGEST_NAME:
        raise ImageReferenceError("this is no image reference")
    first, slash, rest = found[1].partition("/")
    is_host = bool(slash) and (first == "localhost" or "." in first or ":" in first)
    registry, repository = (first, rest) if is_host else ("", found[1])
    return ImageReference(registry, repository, found[2] or "", found[3] or "")
