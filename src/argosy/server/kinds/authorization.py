"""authorization.k8s.io/v1: access reviews. Never stored; `server.auth` answers them."""

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.kinds.shared.builtin import VirtualStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "authorization.k8s.io"
CREATE = frozenset({"create"})
ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
NOT_BOTH = "cannot be specified in combination with resourceAttributes"


def kinds(schemas: Schemas) -> list[Kind]:
    def review(strategy: type[VirtualStrategy], kind: str, namespaced: bool = False) -> Kind:
        plural = f"{kind.lower()}s"
        return declare(schemas, strategy, GROUP, "v1", kind, plural, namespaced=namespaced, verbs=CREATE)

    return [
        review(LocalReviewStrategy, "LocalSubjectAccessReview", namespaced=True),
        review(SelfReviewStrategy, "SelfSubjectAccessReview"),
        review(VirtualStrategy, "SelfSubjectRulesReview"),
        review(SubjectReviewStrategy, "SubjectAccessReview"),
    ]


class SelfReviewStrategy(VirtualStrategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None and path is not None:
            return [invalid("spec.nonResourceAttributes", path, NOT_BOTH)]
        return [invalid("spec.resourceAttributes", path, ONE_OF)] if resource is None and path is None else []


class SubjectReviewStrategy(SelfReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        if not obj["spec"].get("user") and not obj["spec"].get("groups"):
            errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
        return errors


class LocalReviewStrategy(SubjectReviewStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        spec, namespace = obj["spec"], obj["metadata"].get("namespace", "")
        if spec.get("resourceAttributes") is not None:
            asked = spec["resourceAttributes"].get("namespace") or ""
            if asked != namespace:
                detail = "must match metadata.namespace"
                errors.append(invalid("spec.resourceAttributes.namespace", asked, detail))
        if spec.get("nonResourceAttributes") is not None:
            detail = "disallowed on this kind of request"
            errors.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], detail))
        return errors
