"""Reviews: kinds that are never stored: access reviews, rules reviews, token reviews, SelfSubjectReview."""

from argosy.kube.timestamps import now
from argosy.server import status
from argosy.server.auth.authentication import AUTHENTICATED, Authentication
from argosy.server.auth.identity import Attributes, Authorizer, User
from argosy.server.auth.rbac import MAX_NAMED, Rbac
from argosy.server.auth.tokens import TokenRefused
from argosy.server.fielderrors import FieldError, invalid, required, too_many
from argosy.server.metadata import MAX_ITEMS
from argosy.server.registry import Object
from argosy.server.status import aggregate

__all__ = ["Reviews"]

_INVALID_TOKEN = "invalid bearer token"
_EXACTLY_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviews:
    """Fills in the status of a review object, whose field types were checked. Raises 400."""

    def __init__(self, authentication: Authentication, authorizer: Authorizer, rbac: Rbac | None):
        self._authentication = authentication
        self._authorizer = authorizer
        self._rbac = rbac

    def answer(self, kind: str, user: User, review: Object, namespace: str = "") -> Object | list[FieldError]:
        """The answered review, or the errors in the request."""
        spec = review.get("spec") or {}
        match kind:
            case "SelfSubjectReview":
                return {**review, "metadata": {"creationTimestamp": now()}, "status": {"userInfo": _user_info(user)}}
            case "TokenReview":
                return {**review, "status": self._token(spec)}
            case "SelfSubjectRulesReview":
                return {**review, "spec": {}, "status": self._rules(user, spec.get("namespace") or "")}
            case "SelfSubjectAccessReview":
                return _wrong_question(spec) + _wrong_metadata(review) or self._access(review, user)
            case "SubjectAccessReview":
                wrong = _wrong_question(spec) + _wrong_subject(spec) + _wrong_metadata(review)
                return wrong or self._access(review, _subject(spec))
            case "LocalSubjectAccessReview":
                wrong = _wrong_question(spec) + _wrong_subject(spec) + _wrong_place(review, spec, namespace)
                return wrong or self._access(review, _subject(spec))
        raise ValueError(f"{kind} is not a review")

    def _access(self, review: Object, user: User) -> Object:
        spec = review["spec"]
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is None:
            attributes = Attributes(user, path.get("verb") or "", path=path.get("path") or "")
        else:
            fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
            asked = {field: resource.get(field) or "" for field in fields}
            # No resource at all means all of them.
            attributes = Attributes(user, **{**asked, "resource": asked["resource"] or "*"})
        decision = self._authorizer.authorize(attributes)
        told: Object = {"allowed": decision.allowed}
        if decision.reason:
            told["reason"] = decision.reason
        return {**review, "status": told}

    def _token(self, spec: Object) -> Object:
        token = spec.get("token") or ""
        if not token:
            raise status.bad_request("token is required for TokenReview in authentication")
        try:
            known = self._authentication.known(token, tuple(spec.get("audiences") or ()))
        except TokenRefused as refused:
            return {"error": aggregate([_INVALID_TOKEN, str(refused)]), "user": {}}
        if known is None:
            return {"error": _INVALID_TOKEN, "user": {}}
        user, audiences = known
        return {"authenticated": True, "user": _user_info(user), "audiences": list(audiences)}

    def _rules(self, user: User, namespace: str) -> Object:
        if not namespace:
            raise status.bad_request("no namespace on request")
        resource_rules: list[Object] = []
        url_rules: list[Object] = []
        told_so_far, incomplete = 0, self._rbac is None
        for rule in self._rbac.rules_for(user, namespace) if self._rbac else ():
            told_so_far += sum(map(len, (rule.verbs, rule.urls, rule.groups, rule.resources, rule.names)))
            if told_so_far > MAX_NAMED:  # nobody has so many but to keep us busy
                incomplete = True
                break
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
        told: Object = {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": incomplete}
        if self._rbac is not None and (lost := self._rbac.unresolved(user, namespace)):
            told["evaluationError"] = lost
        return told


def _wrong_question(spec: Object) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        shown = {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", shown, detail)]
    if resource is None and path is None:
        return [invalid("spec.resourceAttributes", None, _EXACTLY_ONE)]
    return [
        error
        for field in ("fieldSelector", "labelSelector")
        for error in _wrong_selector((resource or {}).get(field), f"spec.resourceAttributes.{field}")
    ]


def _wrong_selector(selector: Object | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        return [invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [required(f"{path}.requirements", detail)]
    return []


def _wrong_subject(spec: Object) -> list[FieldError]:
    # Each is looked up on the event loop. Kubernetes has no such limit.
    if len(spec.get("groups") or ()) > MAX_ITEMS:
        return [too_many("spec.groups", len(spec["groups"]), MAX_ITEMS)]
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _wrong_metadata(review: Object) -> list[FieldError]:
    given = {field: value for field, value in review["metadata"].items() if value and field != "managedFields"}
    return [invalid("metadata", given, "must be empty")] if given else []


def _wrong_place(review: Object, spec: Object, namespace: str) -> list[FieldError]:
    if review["metadata"].get("namespace") not in (None, "", namespace):
        raise status.other_namespace()
    errors = []
    given = {field: value for field, value in review["metadata"].items() if value and field != "managedFields"}
    if given.keys() - {"namespace"}:
        errors.append(invalid("metadata", given, "must be empty except for namespace"))
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and (resource.get("namespace") or "") != namespace:
        detail = "must match metadata.namespace"
        errors.append(invalid("spec.resourceAttributes.namespace", resource.get("namespace") or "", detail))
    if path is not None:
        shown = {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _subject(spec: Object) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)


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
