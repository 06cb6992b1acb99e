"""Paging: how many objects to request with the next page of a list, and whether the list ends. No I/O.

Applying a page blocks the event loop, so pages of large objects are made smaller. A server is not trusted to stop.
"""

from argosy.kube.transport import Page

__all__ = ["MOST_BYTES", "MOST_OBJECTS", "PAGE", "Paging"]

#: Objects per page by default; fewer if they are large.
PAGE = 500
PAGE_BYTES = 4 * 1024 * 1024
#: Limits for objects in one list, and for empty pages in a row: beyond them a list counts as endless. A large cluster has a
#: million pods.
MOST_OBJECTS = 5_000_000
MOST_EMPTY_PAGES = 100
#: Memory of the objects of one resource in bytes, by `objects.weight`. A million pods take 2 to 3 GB, 20,000 nodes some 150 MB.
MOST_BYTES = 4 * 1024**3


class Paging:
    """One list, page by page. Without a limit (0) it is requested in one piece."""

    def __init__(self, limit: int = PAGE) -> None:
        self.limit = limit
        #: Where the next page starts; empty after the last one.
        self.token = ""
        self._most = limit
        self._count = 0
        self._empty = 0

    @property
    def query(self) -> list[tuple[str, str]]:
        limit = [("limit", str(self.limit))] if self.limit > 0 else []
        return [*limit, *([("continue", self.token)] if self.token else [])]

    def was_too_large(self) -> bool:
        """Request fewer objects. False if that is impossible: one object alone is too large."""
        if self.limit == 1:
            return False
        self._most = self.limit = self.limit // 2 if self.limit > 0 else PAGE
        return True

    def take(self, page: Page) -> bool:
        """Continue after this page. False if the list is endless."""
        self._count += len(page.items)
        self._empty = 0 if page.items else self._empty + 1
        token, self.token = self.token, page.continue_token
        if page.continue_token and (
            page.continue_token == token or self._count > MOST_OBJECTS or self._empty > MOST_EMPTY_PAGES
        ):
            return False
        if self.limit > 0 and page.items:
            size = sum(map(len, page.items)) or 1
            self.limit = max(1, min(self._most, len(page.items) * PAGE_BYTES // size))
        return True
