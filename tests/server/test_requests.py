"""Every request file in requests/ holds on the embedded server, over HTTPS. The files say what Kubernetes answers."""

from pathlib import Path

import pytest

from tests.server.replay import REQUESTS, against_embedded, load

FILES = sorted(REQUESTS.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
async def test_answers_are_those_of_kubernetes(path: Path) -> None:
    replay = await against_embedded(load(path))
    assert not replay.failures, "\n".join(replay.failures)
    assert replay.passed
