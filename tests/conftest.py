"""For all tests: nobody asks how long something took on a busy machine, and the garbage collector has little to look at."""

import gc

from hypothesis import HealthCheck, settings

# Hypothesis asks no clock: a slow machine is no property of what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

#: New objects after which garbage is looked for. By default it is some hundred: a quarter of the tests' time.
_NEW = 20_000


def pytest_collection_finish() -> None:
    """What was imported stays. Looking through it again and again is a good part of what the collector does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW, 20, 20)
