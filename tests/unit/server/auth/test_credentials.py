"""Certificates and tokens: made, kept, verified, refused."""

import hashlib
import stat

import pytest
from cryptography import x509

from argosy.server.auth.authentication import Authentication
from argosy.server.auth.certificates import Authority, peer_identity, server_context
from argosy.server.auth.identity import User
from argosy.server.auth.rbac import Rbac
from argosy.server.auth.reviews import Reviews
from argosy.server.auth.token_requests import token_request
from argosy.server.auth.tokens import ISSUER, ServiceAccountTokens, StaticTokens, TokenRefused, new_key
from argosy.server.fielderrors import FieldError


def der(pem: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def test_the_authority_and_its_certificates_survive_a_restart(tmp_path):
    folder = tmp_path / "pki"
    first = Authority.open(folder)
    server, admin = first.server_pair(["localhost", "127.0.0.1"]), first.client_pair("admin", "admin", ["g"])
    again = Authority.open(folder)
    assert again.certificate == first.certificate
    assert again.server_pair(["127.0.0.1"]) == server
    assert again.client_pair("admin", "admin", ["g"]) == admin
    assert again.server_pair(["10.0.0.1"]) != server, "new addresses need a new certificate"
    assert again.client_pair("admin", "other") != admin
    assert stat.S_IMODE((folder / "ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    server_context(server, first.certificate)


def test_a_client_certificate_names_user_and_groups():
    pair = Authority.ephemeral().issue("alice", groups=["dev", "ops"])
    assert peer_identity(der(pair.certificate)) == ("alice", ("dev", "ops"))
    user = Authentication(StaticTokens()).authenticate({}, der(pair.certificate))
    fingerprint = hashlib.sha256(der(pair.certificate)).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)}
    assert user == User("alice", ("dev", "ops", "system:authenticated"), extra=extra)


def test_tokens_that_are_missing_or_wrong_are_nobody():
    authentication = Authentication(StaticTokens({"s3cret": User("bot")}))
    assert authentication.authenticate({"authorization": "Bearer s3cret"}, None).name == "bot"
    for header in ({}, {"authorization": "Bearer "}, {"authorization": "Basic s3cret"}, {"authorization": "Bearer no"}):
        assert authentication.authenticate(header, None) is None


def test_service_account_tokens_are_their_account_until_refused():
    refusals = [""]
    tokens = ServiceAccountTokens(new_key(), refusal=lambda claims: refusals[0])
    token, _ = tokens.sign("ci", "bot", "uid-1")
    authentication = Authentication(StaticTokens(), tokens)
    user = authentication.authenticate({"authorization": f"Bearer {token}"}, None)
    assert user.name == "system:serviceaccount:ci:bot"
    assert "system:serviceaccounts:ci" in user.groups
    refusals[0] = "gone"
    assert authentication.authenticate({"authorization": f"Bearer {token}"}, None) is None


def test_foreign_expired_and_misdirected_tokens_are_refused():
    tokens = ServiceAccountTokens(new_key())
    assert tokens.verify(ServiceAccountTokens(new_key()).sign("ci", "bot", "u")[0]) is None
    with pytest.raises(TokenRefused, match="has expired"):
        tokens.verify(tokens.sign("ci", "bot", "u", seconds=-10)[0])
    with pytest.raises(TokenRefused, match="audiences"):
        tokens.verify(tokens.sign("ci", "bot", "u", audiences=["vault"])[0])
    assert tokens.verify(tokens.sign("ci", "bot", "u", audiences=["vault"])[0], ["vault"]) is not None
    assert tokens.verify("not.a.token") is None


def test_a_fixed_token_is_good_for_this_server_only():
    authentication = Authentication(StaticTokens({"s3cret": User("bot")}))
    assert authentication.known("s3cret", ("vault", ISSUER)) == (User("bot", ("system:authenticated",)), (ISSUER,))
    assert authentication.known("s3cret", ("vault",)) is None


def test_token_requests_have_bounds():
    tokens = ServiceAccountTokens(new_key())
    account = {"metadata": {"name": "bot", "namespace": "ci", "uid": "u"}}
    answer = token_request(tokens, account, {"spec": {"expirationSeconds": 1200}})
    assert tokens.verify(answer["status"]["token"]).name == "bot"
    assert answer["spec"]["audiences"] == [ISSUER]
    refused = token_request(tokens, account, {"spec": {"expirationSeconds": 5}})
    assert [str(error) for error in refused] == [
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes"
    ]


def test_reviews_answer_for_the_asker_and_for_others():
    rbac = Rbac()
    authentication = Authentication(StaticTokens({"t": User("bot")}))
    reviews = Reviews(authentication, rbac, rbac)
    root, pods = User("root", ("system:masters",)), {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    assert reviews.answer("SelfSubjectAccessReview", root, {"metadata": {}, "spec": pods})["status"] == {
        "allowed": True
    }
    other = {"metadata": {}, "spec": {**pods, "user": "eve"}}
    assert reviews.answer("SubjectAccessReview", root, other)["status"] == {"allowed": False}
    assert reviews.answer("TokenReview", root, {"spec": {"token": "t"}})["status"]["user"]["username"] == "bot"
    assert reviews.answer("TokenReview", root, {"spec": {"token": "x"}})["status"]["error"] == "invalid bearer token"
    assert reviews.answer("SelfSubjectReview", root, {})["status"]["userInfo"]["username"] == "root"
    wrong = reviews.answer("SubjectAccessReview", root, {"metadata": {}, "spec": pods})
    assert isinstance(wrong, list)
    assert isinstance(wrong[0], FieldError)
