"""How the scenarios run here."""

from tests.harness.virtual import loop_factories

#: Virtual time, unless a test says why not.
pytest_asyncio_loop_factories = loop_factories
