"""admissionregistration.k8s.io/v1: admission webhooks and policies, as stored objects.

Webhooks are not called and policies are not evaluated here; expressions are stored as written.
"""

from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared import webhooks
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "admissionregistration.k8s.io"
OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]
SCOPES = ["*", "Cluster", "Namespaced"]
FAILURE_POLICIES = ["Fail", "Ignore"]
MATCH_POLICIES = ["Equivalent", "Exact"]
SIDE_EFFECTS = ["None", "NoneOnDryRun"]
REVIEW_VERSIONS = ["v1", "v1beta1"]
ACTIONS = ["Audit", "Deny", "Warn"]
REINVOCATIONS = ["IfNeeded", "Never"]


def kinds(schemas: Schemas) -> list[Kind]:
    def kind(strategy: type[BuiltinStrategy], name: str, plural: str, *subresources: str) -> Kind:
        return declare(
            schemas,
            strategy,
            GROUP,
            "v1",
            name,
            plural,
            namespaced=False,
            categories=("api-extensions",),
            subresources=frozenset(subresources),
        )

    return [
        kind(MutatingPolicyStrategy, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        kind(BindingStrategy, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
        kind(MutatingWebhooksStrategy, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        kind(ValidatingPolicyStrategy, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "status"),
        kind(ValidatingBindingStrategy, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        kind(WebhooksStrategy, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ]


class _StoredStrategy(StatuslessStrategy):
    generation = True
    unconditional_update = False


class WebhooksStrategy(_StoredStrategy):
    def default(self, obj: Object) -> None:
        for webhook in obj.get("webhooks") or ():
            fill(webhook, "failurePolicy", "Fail")
            fill(webhook, "timeoutSeconds", 10)
            _default_match(webhook, "rules")
            webhooks.default_client_config(webhook.setdefault("clientConfig", {}))

    def validate(self, obj: Object) -> list[FieldError]:
        errors = []
        seen: set[str] = set()
        for i, webhook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{i}]", webhook.get("name") or ""
            errors += _webhook(webhook, name, path)
            if name and name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return errors


class MutatingWebhooksStrategy(WebhooksStrategy):
    def default(self, obj: Object) -> None:
        super().default(obj)
        for webhook in obj.get("webhooks") or ():
            fill(webhook, "reinvocationPolicy", "Never")

    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        for i, webhook in enumerate(obj.get("webhooks") or ()):
            policy = webhook["reinvocationPolicy"]
            if policy not in REINVOCATIONS:
                errors.append(not_supported(f"webhooks[{i}].reinvocationPolicy", policy, REINVOCATIONS))
        return errors


class ValidatingPolicyStrategy(BuiltinStrategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        _default_policy(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _policy(spec)
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            detail = "validations or auditAnnotations must contain at least one item"
            errors += [required(f"spec.{field}", detail) for field in ("validations", "auditAnnotations")]
        for i, validation in enumerate(spec.get("validations") or ()):
            if not (validation.get("expression") or "").strip():
                errors.append(required(f"spec.validations[{i}].expression", "expression is not specified"))
        return errors


class MutatingPolicyStrategy(_StoredStrategy):
    def default(self, obj: Object) -> None:
        _default_policy(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _policy(spec)
        if not spec.get("mutations"):
            errors.append(required("spec.mutations", "mutations must contain at least one item"))
        policy = spec.get("reinvocationPolicy") or ""
        return errors + rules.one_of(policy, "spec.reinvocationPolicy", REINVOCATIONS)


class BindingStrategy(_StoredStrategy):
    def default(self, obj: Object) -> None:
        match = obj.setdefault("spec", {}).get("matchResources")
        if match is not None:
            _default_match(match, "resourceRules", "excludeResourceRules")

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        name = spec.get("policyName") or ""
        errors = rules.dns_subdomain(name, "spec.policyName") if name else [required("spec.policyName")]
        if spec.get("paramRef") is not None:
            errors += _param_ref(spec["paramRef"], "spec.paramRef")
        if spec.get("matchResources") is not None:
            errors += _match(spec["matchResources"], "spec.matchResources")
        return errors


class ValidatingBindingStrategy(BindingStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        actions, path = obj["spec"].get("validationActions") or [], "spec.validationActions"
        if not actions:
            errors.append(required(path, "at least one validation action is required"))
        for i, (action, repeated) in enumerate(zip(actions, rules.repeated(actions), strict=True)):
            if action not in ACTIONS:
                errors.append(not_supported(f"{path}[{i}]", action, ACTIONS))
            if repeated:
                errors.append(duplicate(f"{path}[{i}]", action))
        if "Deny" in actions and "Warn" in actions:
            why = "repeating the same validation failure information in the API response and headers serves no purpose"
            errors.append(invalid(path, actions, f"must not contain both Deny and Warn ({why})"))
        return errors


def _default_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, "failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _default_match(spec["matchConstraints"], "resourceRules", "excludeResourceRules")


def _default_match(match: Object, *rule_fields: str) -> None:
    fill(match, "matchPolicy", "Equivalent")
    fill(match, "namespaceSelector", {})
    fill(match, "objectSelector", {})
    for field in rule_fields:
        for rule in match.get(field) or ():
            fill(rule, "scope", "*")


def _policy(spec: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    if spec["failurePolicy"] not in FAILURE_POLICIES:
        errors.append(not_supported("spec.failurePolicy", spec["failurePolicy"], FAILURE_POLICIES))
    match = spec.get("matchConstraints")
    if match is None:
        return [*errors, required("spec.matchConstraints")]
    if not match.get("resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    return errors + _match(match, "spec.matchConstraints")


def _param_ref(ref: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    name, selector = ref.get("name"), ref.get("selector")
    if name and selector is not None:
        detail = "name and selector are mutually exclusive"
        errors += [forbidden(f"{path}.{field}", detail) for field in ("name", "selector")]
    elif not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    errors += rules.label_selector(selector, f"{path}.selector")
    action = ref.get("parameterNotFoundAction") or ""
    return errors + rules.one_of(action, f"{path}.parameterNotFoundAction", ["Deny", "Allow"])


def _match(match: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if match["matchPolicy"] not in MATCH_POLICIES:
        errors.append(not_supported(f"{path}.matchPolicy", match["matchPolicy"], MATCH_POLICIES))
    for field in ("namespaceSelector", "objectSelector"):
        errors += rules.label_selector(match[field], f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in enumerate(match.get(field) or ()):
            errors += _rule(rule, f"{path}.{field}[{i}]")
    return errors


def _webhook(webhook: Mapping[str, Any], name: str, path: str) -> list[FieldError]:
    errors = _webhook_name(name, f"{path}.name")
    for i, rule in enumerate(webhook.get("rules") or ()):
        errors += _rule(rule, f"{path}.rules[{i}]")
    if webhook["failurePolicy"] not in FAILURE_POLICIES:
        errors.append(not_supported(f"{path}.failurePolicy", webhook["failurePolicy"], FAILURE_POLICIES))
    if webhook["matchPolicy"] not in MATCH_POLICIES:
        errors.append(not_supported(f"{path}.matchPolicy", webhook["matchPolicy"], MATCH_POLICIES))
    effects = webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(SIDE_EFFECTS)}"))
    elif effects not in SIDE_EFFECTS:
        errors.append(not_supported(f"{path}.sideEffects", effects, SIDE_EFFECTS))
    seconds = webhook["timeoutSeconds"]
    if not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += rules.label_selector(webhook[field], f"{path}.{field}")
    errors += webhooks.validate_client_config(webhook["clientConfig"], f"{path}.clientConfig")
    for i, condition in enumerate(webhook.get("matchConditions") or ()):
        errors += [
            required(f"{path}.matchConditions[{i}].{field}")
            for field in ("expression", "name")
            if not (condition.get(field) or "").strip()
        ]
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        detail = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(required(f"{path}.admissionReviewVersions", detail))
    elif not any(version in REVIEW_VERSIONS for version in versions):
        detail = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(invalid(f"{path}.admissionReviewVersions", versions, detail))
    for i, version in enumerate(versions):
        errors += rules.messages(version, f"{path}.admissionReviewVersions[{i}]", names.dns1035_label_errors(version))
    return errors


def _webhook_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = rules.dns_subdomain(name, path)
    if not errors and name.count(".") < 2:
        errors = [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return errors


def _rule(rule: Mapping[str, Any], path: str) -> list[FieldError]:
    operations = rule.get("operations") or []
    errors = [] if operations else [required(f"{path}.operations")]
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", operations, detail))
    for i, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{i}]", operation, OPERATIONS))
    errors += _wildcards(rule, path, "apiGroups", "API groups")
    errors += _wildcards(rule, path, "apiVersions", "API versions")
    for i, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            errors.append(required(f"{path}.apiVersions[{i}]"))
    errors += _wildcards(rule, path, "resources", "resources without subresources")
    scope = rule["scope"]
    return errors + ([] if scope in SCOPES else [not_supported(f"{path}.scope", scope, SCOPES)])


def _wildcards(rule: Mapping[str, Any], path: str, field: str, what: str) -> list[FieldError]:
    values: list[str] = rule.get(field) or []
    if not values:
        return [required(f"{path}.{field}")]
    others = [value for value in values if value != "*" and "/" not in value]
    if "*" in values and others:
        return [invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}")]
    return []
