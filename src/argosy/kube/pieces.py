"""Pieces: connections that refuse a response in tiny pieces.

The cost of reading depends on pieces, not bytes: chunks of one byte, or one "100 Continue" after another, block the event loop
with 256 KiB for a tenth of a second, again and again. No server writes like that.
"""

import asyncio
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["whole"]

#: Smallest average piece. Even a small watch event has three times as many bytes per line end; JSON itself has none.
SMALLEST = 64
#: Smaller reads are not checked.
_MUCH = 4096


class _Protocol(ResponseHandler):
    def data_received(self, data: bytes) -> None:
        if len(data) > _MUCH and data.count(b"\r\n") * SMALLEST > len(data):
            refusal = HttpProcessingError(message=f"the answer comes in pieces of less than {SMALLEST} bytes")
            if self._payload is not None:
                self._payload.set_exception(refusal)
            self.set_exception(refusal)
            if self.transport is not None:
                self.transport.close()
            return
        super().data_received(data)


def whole(pool: aiohttp.TCPConnector) -> aiohttp.TCPConnector:
    """The pool, whose connections from now on refuse tiny pieces."""
    pool._factory = cast("partial[ResponseHandler]", partial(_Protocol, loop=asyncio.get_running_loop()))
    return pool
