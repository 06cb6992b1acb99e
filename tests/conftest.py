"""For all tests: hypothesis asks no clock. A busy machine is slow, and that is no property of what is tested."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
