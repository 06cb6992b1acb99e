"""Argosy's own API server keeps others from writing federated objects. `tests/real` has the same attempts on stock Kubernetes."""

from collections.abc import AsyncIterator

import pytest

from argosy.api import keys, resources, rights
from argosy.cli.local import access
from argosy.cli.local.guard import Guard
from argosy.control.install.installer import Installation, install
from argosy.kube.errors import Forbidden
from argosy.plan.pipeline.run import STEPS
from argosy.server.auth.identity import User
from argosy.server.embedded import EmbeddedServer
from tests.harness import guarding
from tests.harness.servers import new_server


@pytest.fixture
async def plane() -> AsyncIterator[EmbeddedServer]:
    server = new_server(admission=(Guard,))
    await server.start()
    try:
        await install(server.client(), chosen=access.INSTALLATION)
        yield server
    finally:
        await server.stop()


async def test_others_are_kept_out_and_further_steps_write_what_is_theirs(plane):
    def as_(user):
        return plane.client(User(user, ("system:authenticated",)))

    await guarding.prepare(plane.client(), as_)
    await guarding.refuses(plane.client(), as_)


async def test_the_controllers_are_whom_the_binding_names(plane):
    controllers = plane.client(User(access.CONTROLLERS, ("system:authenticated",)))
    admin = plane.client()
    await guarding.prepare(admin, lambda user: plane.client(User(user, ("system:authenticated",))))
    change = {"metadata": {"labels": {"a": "b"}}}
    await controllers.patch(resources.FEDERATED_OBJECTS, "kept-configmaps", change, guarding.SHOP)
    boss = plane.client(User("boss", ("system:authenticated",)))
    with pytest.raises(Forbidden, match="controllers alone"):
        await boss.patch(resources.FEDERATED_OBJECTS, "kept-configmaps", {"metadata": {"labels": None}}, guarding.SHOP)
    # Somebody else runs them: from the moment the binding says so.
    await install(admin, chosen=Installation(controllers=(rights.user("boss"),), any_source=True))
    await boss.patch(resources.FEDERATED_OBJECTS, "kept-configmaps", {"metadata": {"labels": None}}, guarding.SHOP)


def test_the_steps_that_are_ours_are_those_the_pipeline_does():
    assert set(keys.OWN_STEPS) == set(STEPS)
