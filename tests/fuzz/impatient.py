"""`python -m tests.fuzz.impatient up …`: the command line, with a server that keeps seconds of history instead of minutes.

What was written stays in memory for as long as watches may ask for it, and SQLite keeps pages it has read up to a bound. A run
could not tell that from what is lost.
"""

import sys

from argosy.cli import main
from argosy.server.lifecycle import compaction
from argosy.server.storage import schema

HISTORY = 15.0

if __name__ == "__main__":
    compaction.HISTORY_SECONDS = HISTORY
    compaction.PERIOD = HISTORY / 5
    schema.CACHE_KIB = 1024
    sys.exit(main())
