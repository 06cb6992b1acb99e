"""To which cluster, and where, a secret's credentials may be sent."""

from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.clusters import ClusterCondition, ClusterSpec, ClusterStatus, FederatedCluster, LocalSecretReference
from argosy.fleet.binding import Permission, permission
from argosy.kube.objects import Metadata

HERE = "https://10.0.0.1:6443"
EVIL = "https://evil.example.com"
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"


def cluster(
    name: str = "m1",
    *,
    joined: str = "",
    insecure: bool = False,
    created: str = EARLY,
    secret: str = "m1",
    generation: int = 1,
) -> FederatedCluster:
    spec = ClusterSpec(api_endpoint=HERE, insecure=insecure, secret_ref=LocalSecretReference(secret))
    conditions = (ClusterCondition("Joined", "True", joined, joined),) if joined else ()
    metadata = Metadata(name=name, creation_timestamp=created, generation=generation)
    return FederatedCluster(metadata, spec, ClusterStatus(conditions))


def secret(bound: str = "", name: str = "m1", created: str = EARLY) -> Metadata:
    annotations = {keys.BOUND_TO: bound} if bound else {}
    return Metadata(name=name, annotations=annotations, creation_timestamp=created)


def asked(
    of: FederatedCluster, server: str, found: Metadata, *others: FederatedCluster, has_ca: bool = True
) -> Permission:
    of = msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, api_endpoint=server))
    return permission(of, found, has_ca=has_ca, sharers=[of, *others])


def refused(*arguments: Any, **options: Any) -> str:
    found = asked(*arguments, **options)
    assert found.binding == ""
    assert f"kubectl annotate --overwrite secret -n {keys.SYSTEM_NAMESPACE}" in found.refusal
    return found.refusal


class TestVerified:
    def test_first_use_binds(self):
        assert asked(cluster(), HERE, secret()) == Permission(binding=f"m1={HERE}")

    def test_a_server_that_proves_itself_may_be_anywhere(self):
        assert asked(cluster(), "https://new", secret(f"m1={HERE}")) == Permission(binding="m1=https://new")
        assert asked(cluster(), HERE, secret(f"m1={HERE}")).is_bound

    def test_one_secret_serves_one_cluster(self):
        assert "serves m1" in refused(cluster("m2"), HERE, secret(f"m1={HERE}"))
        assert "serves m1" in refused(cluster("m2"), HERE, secret(), cluster("m1", joined=LATE))
        assert "serves m1" in refused(cluster("m2"), HERE, secret(), cluster("m1", created=LATE)), "by its name"
        assert "serves m3" in refused(cluster("m2", created=LATE), HERE, secret(name="x"), cluster("m3"))

    def test_clusters_that_shared_one_before_go_on(self):
        others = cluster("m2", joined=EARLY)
        assert asked(cluster(joined=EARLY), HERE, secret(), others).binding == f"m1={HERE},m2="
        assert asked(others, EVIL, secret(f"m1={HERE},m2=")).binding == f"m1={HERE},m2={EVIL}"


class TestInsecure:
    def test_a_secret_that_is_good_for_nothing_else_is_bound_by_the_cluster_of_its_name(self):
        assert asked(cluster(insecure=True), HERE, secret(), has_ca=False) == Permission(binding=f"m1={HERE}")

    def test_nothing_is_sent_for_a_cluster_of_another_name(self):
        assert "not bound" in refused(cluster("evil", insecure=True), EVIL, secret(), has_ca=False)

    def test_nor_what_is_meant_to_be_verified(self):
        assert "not bound" in refused(cluster(insecure=True), EVIL, secret(), has_ca=True)

    def test_nor_elsewhere_than_where_it_is_bound_to(self):
        assert f"is bound to {HERE}" in refused(cluster(insecure=True), EVIL, secret(f"m1={HERE}"))
        assert f"is bound to {HERE}" in refused(cluster(insecure=True), EVIL, secret(f"m1={HERE}"), has_ca=False)
        assert "no address" in refused(cluster(insecure=True), EVIL, secret("m1"))

    def test_without_tls_nothing_is_verified_either(self):
        clear = HERE.replace("https", "http")
        assert "http://" in refused(cluster(), clear, secret(), has_ca=True)
        assert f"is bound to {HERE}" in refused(cluster(), clear, secret(f"m1={HERE}"), has_ca=True)
        assert asked(cluster(), clear, secret(f"m1={clear}"), has_ca=True).is_bound

    def test_where_it_is_bound_to_it_may_be_sent(self):
        assert asked(cluster(insecure=True), HERE, secret(f"m1={HERE}/")).is_bound

    def test_one_that_joined_with_it_before_goes_on(self):
        of = cluster(insecure=True, joined=LATE, secret="x")
        assert asked(of, HERE, secret(name="x"), has_ca=False).binding == f"m1={HERE}"

    def test_but_not_with_a_secret_that_came_later(self):
        of = cluster(insecure=True, joined=EARLY, secret="x")
        assert "not bound" in refused(of, HERE, secret(name="x", created=LATE), has_ca=False)

    def test_those_that_shared_one_before_go_on_one_after_the_other(self):
        a, b = (cluster(name, insecure=True, joined=LATE, secret="x") for name in ("a", "b"))
        first = asked(b, EVIL, secret(name="x"), a, has_ca=False).binding
        assert first == f"a=,b={EVIL}"
        assert asked(a, HERE, secret(first, name="x"), b, has_ca=False).binding == f"a={HERE},b={EVIL}"

    def test_but_not_with_a_secret_that_was_named_later(self):
        """Its spec was changed since it was made, so nothing shows that it joined with this one."""
        of = cluster(insecure=True, joined=LATE, secret="x", generation=2)
        assert "not bound" in refused(of, HERE, secret(name="x"), has_ca=False)
        assert "not bound" in refused(of, HERE, secret("m1=,m2=", name="x"), has_ca=False)

    def test_nor_with_one_of_its_name_that_serves_another(self):
        of = cluster(insecure=True, joined=LATE, generation=2)
        assert "not bound" in refused(of, EVIL, secret(), cluster("m2", joined=LATE), has_ca=False)
