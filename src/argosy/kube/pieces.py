"""Pieces: connections on which an answer that comes in crumbs is refused.

To take in an answer costs by its pieces, not by its bytes: chunks of one byte, or one "100 Continue" after the other, keep the
event loop busy with 256 KiB for a tenth of a second, again and again. No server writes like that.
"""

import asyncio
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["whole"]

#: A small event of a watch has three times as many bytes to each end of a line; JSON itself has none.
SMALLEST = 64
#: Less than this is soon done, whatever it is.
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
    """The pool, on whose connections from now on answers are to come in pieces of some size."""
    pool._factory = cast("partial[ResponseHandler]", partial(_Protocol, loop=asyncio.get_running_loop()))
    return pool
