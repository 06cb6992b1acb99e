"""Logs: one readable line an event, to a file that does not grow without end or to stderr. Credentials never get through."""

import logging
import logging.handlers
import re
import time
from pathlib import Path

__all__ = ["to_file", "to_stderr"]

_SECRETS = re.compile(
    r"(?i)(bearer\s+)\S+"
    r"|(basic\s+)[a-z0-9+/=]{8,}"
    r"|()eyJ[\w-]+\.[\w-]+\.[\w-]+"
    r"|()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_MEGABYTES = 1024 * 1024


class _Lines(logging.Formatter):
    """`2026-01-31T10:00:00.123Z INFO  control.dispatch: text`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace(" argosy.", " ", 1)
        return _SECRETS.sub(lambda found: (found[1] or found[2] or "") + "[redacted]", text)


def to_file(path: Path, level: str = "INFO") -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _use(logging.handlers.RotatingFileHandler(path, maxBytes=32 * _MEGABYTES, backupCount=3), level)


def to_stderr(level: str = "INFO") -> None:
    _use(logging.StreamHandler(), level)


def _use(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level)
