"""Reviews: kinds that are asked, not stored. Access reviews, rules reviews, token reviews, "who am I", token requests."""

import datetime
from typing import Any

from argosy.server.auth.authentication import AUTHENTICATED, Authentication
from argosy.server.auth.rbac import Rbac
from argosy.server.auth.tokens import ISSUER, ServiceAccountTokens
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.identity import Attributes, Authorizer, User

__all__ = ["Reviews", "token_request"]

Object = dict[str, Any]
_MIN_SECONDS, _MAX_SECONDS, _DEFAULT_SECONDS = 600, 1 << 32, 3600


class Reviews:
    """Answers a review object: each method returns the object with its status filled in."""

    def __init__(self, authentication: Authentication, authorizer: Authorizer, rbac: Rbac | None):
        self._authentication = authentication
        self._authorizer = authorizer
        self._rbac = rbac

    def answer(self, kind: str, user: User, review: Object, namespace: str = "") -> Object | list[FieldError]:
        """The answered review, or what is wrong with the question."""
        spec = review.get("spec") or {}
        match kind:
            case "SelfSubjectReview":
                return {**review, "status": {"userInfo": _user_info(user)}}
            case "TokenReview":
                return {**review, "status": self._token(spec)}
            case "SelfSubjectRulesReview":
                return {**review, "status": self._rules(user, str(spec.get("namespace", "")))}
            case "SelfSubjectAccessReview":
                return self._access(review, user, "")
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                if not spec.get("user") and not spec.get("groups"):
                    return [invalid("spec.user", "", "at least one of user or group must be specified")]
                asked = User(
                    str(spec.get("user", "")),
                    tuple(spec.get("groups") or ()),
                    str(spec.get("uid", "")),
                    {key: tuple(values) for key, values in (spec.get("extra") or {}).items()},
                )
                return self._access(review, asked, namespace if kind.startswith("Local") else "")
        raise ValueError(f"{kind} is not a review")

    def _access(self, review: Object, user: User, namespace: str) -> Object | list[FieldError]:
        spec = review.get("spec") or {}
        if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            return [invalid("spec.resourceAttributes", spec.get("resourceAttributes"), detail)]
        resource: Object = spec.get("resourceAttributes") or {}
        path: Object = spec.get("nonResourceAttributes") or {}
        if path:
            attributes = Attributes(user, str(path.get("verb", "")), path=str(path.get("path", "")))
        else:
            if namespace and resource.get("namespace") != namespace:
                detail = "must match metadata.namespace"
                return [invalid("spec.resourceAttributes.namespace", resource.get("namespace", ""), detail)]
            attributes = Attributes(
                user,
                str(resource.get("verb", "")),
                str(resource.get("group", "")),
                str(resource.get("version", "")),
                str(resource.get("resource", "")) or "*",
                str(resource.get("subresource", "")),
                str(resource.get("namespace", "")),
                str(resource.get("name", "")),
            )
        decision = self._authorizer.authorize(attributes)
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return {**review, "status": status}

    def _token(self, spec: Object) -> Object:
        audiences = tuple(spec.get("audiences") or ())
        user = self._authentication.user_of_token(str(spec.get("token", "")), audiences)
        if user is None:
            return {"error": "invalid bearer token", "user": {}}
        return {"authenticated": True, "user": _user_info(user), "audiences": list(audiences) or [ISSUER]}

    def _rules(self, user: User, namespace: str) -> Object:
        resource_rules: list[Object] = []
        url_rules: list[Object] = []
        for rule in self._rbac.rules_for(user, namespace) if self._rbac else ():
            if rule.urls:
                url_rules.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)})
                continue
            shown: Object = {
                "verbs": list(rule.verbs),
                "apiGroups": list(rule.groups),
                "resources": list(rule.resources),
            }
            if rule.names:
                shown["resourceNames"] = list(rule.names)
            resource_rules.append(shown)
        incomplete = self._rbac is None
        return {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": incomplete}


def token_request(
    tokens: ServiceAccountTokens, account: Object, review: Object, bound: Object | None = None
) -> Object | list[FieldError]:
    """Answer a TokenRequest (create of serviceaccounts/token) for a stored account; `bound`: claims about one more object."""
    spec = dict(review.get("spec") or {})
    seconds = int(spec.get("expirationSeconds") or _DEFAULT_SECONDS)
    if seconds < _MIN_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    metadata = account["metadata"]
    audiences = list(spec.get("audiences") or [tokens.issuer])
    token, expires = tokens.sign(
        metadata["namespace"], metadata["name"], metadata["uid"], audiences=audiences, seconds=seconds, bound=bound
    )
    until = datetime.datetime.fromtimestamp(expires, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"boundObjectRef": None, **spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": until},
    }


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    elif user.name:
        info["groups"] = [AUTHENTICATED]
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
