"""Who runs the controllers, as the stored binding of their roles says. Nobody where no federation was installed."""

from typing import Any

from argosy.api import rights
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.store import Store

__all__ = ["BoundControllers"]

_BINDING = f"{rights.GROUP}/clusterrolebindings/{rights.CONTROLLERS}"


class BoundControllers:
    def __init__(self, store: Store):
        self._store = store
        #: The binding that was read last, and whom it names.
        self._read: tuple[Entry | None, list[dict[str, str]]] = (None, [])

    def subjects(self) -> list[dict[str, str]]:
        entry = self._store.get(_BINDING)
        if entry is not self._read[0]:
            binding: dict[str, Any] = entry.decode() if entry is not None else {}
            self._read = (entry, list(binding.get("subjects") or ()))
        return self._read[1]
