"""Upgrading stored CustomResourceDefinitions: brought to this version, and nothing that objects depend on taken away."""

import copy
import hashlib

import orjson
import pytest

from argosy.api import crds, keys
from argosy.api.crds.upgrade import REVISION, revision, upgraded

OURS = crds.manifests()[0]
#: The schemas of each revision. A test below fails when they change without a new one: raise REVISION and add its digest.
DIGESTS = {
    1: "7baa64b6ea558e9b4be0be6a04832434e93317104e3817b7f9a9e3ec0c826443",
    2: "85436df05c2ef59549ad6850e3879ac20f72b8bedf2283c6fb505d7922407591",
    3: "ad47f8a0cb96fcbde150f5b90a8b89764cb6785b4f7a64d76f67d84dd3bdcf0e",
    4: "0f6ea10cca1d05c4c3fd2d70a549f7b243403c681a879c6af4578529bc7de088",
    5: "2483948d94df71ae8f46ad0cc0db2ff20d97866f33ac70af210d0b6f03607aba",
    6: "3be6368b11caae0a918657e6024f6b17f897891aa7ac6bb5e2863b3975a28f60",
    7: "d705e938690dc3407e38bf0411913ccf935598626b7e393e8b8f0275fd7bb3b2",
    8: "087759eb415eab100f795bd4e4ce1e3872c2e900ae9a109c47e15d6d3a005480",
    9: "cd2d5879c98816684276a88d023b746e8bb16792b77dd2337df46f5dbe21fd5a",
    10: "92c5f4fddc35a98b0aa51f9ee3475b790a4041127828d56b65952143d72627d4",
}


def stored(**spec):
    """Ours as a server gives it back, with what it adds."""
    found = copy.deepcopy(OURS)
    found["metadata"] |= {"uid": "1", "resourceVersion": "7", "labels": {"owner": "us"}}
    found["spec"] |= {"conversion": {"strategy": "None"}, **spec}
    found["status"] = {"storedVersions": ["v1alpha1"]}
    return found


def test_the_revision_grows_with_the_schemas():
    specs = {manifest["metadata"]["name"]: manifest["spec"] for manifest in crds.manifests()}
    digest = hashlib.sha256(orjson.dumps(specs, option=orjson.OPT_SORT_KEYS)).hexdigest()
    assert DIGESTS[REVISION] == digest
    assert max(DIGESTS) == REVISION


def test_the_same_definition_is_left_as_it_is():
    found = stored()
    assert upgraded(found, OURS) == found


def test_an_older_schema_is_replaced_and_the_rest_stays():
    found = stored(conversion={"strategy": "Webhook", "webhook": {"x": 1}})
    found["metadata"]["annotations"] = {"mine": "yes"}
    found["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object"}}
    found["spec"]["names"]["categories"] = ["all"]
    wanted = upgraded(found, OURS)
    assert wanted["spec"]["versions"] == OURS["spec"]["versions"]
    assert wanted["spec"]["conversion"] == found["spec"]["conversion"]
    assert wanted["spec"]["names"]["categories"] == ["all"]
    assert wanted["metadata"]["annotations"] == {"mine": "yes", **OURS["metadata"]["annotations"]}
    assert wanted["metadata"]["labels"] == {"owner": "us"}
    assert wanted["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("stores_ours", [True, False])
def test_other_versions_stay_and_the_stored_one_stays_the_stored_one(stores_ours):
    other = {"name": "v1beta1", "served": True, "storage": not stores_ours, "schema": {}}
    found = stored()
    found["spec"]["versions"] = [{**OURS["spec"]["versions"][0], "storage": stores_ours, "schema": {}}, other]
    versions = {version["name"]: version for version in upgraded(found, OURS)["spec"]["versions"]}
    assert versions["v1beta1"] == other
    assert versions["v1alpha1"] == {**OURS["spec"]["versions"][0], "storage": stores_ours}


def test_a_definition_without_our_version_gets_it_served_but_not_stored():
    found = stored(versions=[{"name": "v1", "served": True, "storage": True, "schema": {}}])
    versions = upgraded(found, OURS)["spec"]["versions"]
    assert [(version["name"], version["storage"]) for version in versions] == [("v1", True), ("v1alpha1", False)]


@pytest.mark.parametrize(("text", "number"), [(None, 0), ("7", 7), ("", 0), ("x", 0), ("-1", 0), ("²", 0)])
def test_the_revision_of_what_is_stored(text, number):
    found = {"metadata": {"annotations": {keys.REVISION: text} if text is not None else None}}
    assert revision(found) == number
