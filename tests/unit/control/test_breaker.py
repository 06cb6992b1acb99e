"""The circuit breaker of a member."""

import pytest

from argosy.control.members.breaker import Breaker
from argosy.kube.errors import TransportError


def test_nothing_is_sent_after_failures_and_that_is_no_answer_to_whoever_asks() -> None:
    """Whoever copes with a member that does not answer copes with an open breaker as well."""
    breaker = Breaker(failures=2, open_for=5.0)
    breaker.check()
    breaker.failed()
    breaker.failed()
    with pytest.raises(TransportError, match="did not answer lately"):
        breaker.check()
