"""apiextensions.k8s.io/v1: CustomResourceDefinitions, as objects. `server.crd` serves the kinds they define.

`server.crd.structural` checks the schemas.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from argosy.kube import names
from argosy.kube.conditions import set_condition
from argosy.kube.schema import Schemas
from argosy.server.crd import patterns
from argosy.server.crd.structural import rule_warnings, validate_schema
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, required, too_many
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared import webhooks
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["CLEANUP", "kinds", "validate_definition"]

#: The finalizer that keeps a definition until its objects are gone.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

SCOPES = ["Cluster", "Namespaced"]
COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"]
COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"]
REVIEW_VERSIONS = ["v1", "v1beta1"]
MAX_SELECTABLE_FIELDS = 8
#: What the server keeps of each kind unasked is bounded; Kubernetes has no such limits.
MAX_VERSIONS = 100
MAX_COLUMNS = 256
MAX_NAMES = 256
MAX_DEPRECATION_WARNING = 256
APPROVED = "api-approved.kubernetes.io"
#: Groups of the Kubernetes community, in which definitions need a reviewed pull request.
PROTECTED = ("k8s.io", "kubernetes.io")
#: Fields that all versions may have in common, in the order of Kubernetes' internal type.
_PARTS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            DefinitionStrategy,
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            namespaced=False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=frozenset({"status"}),
        )
    ]


class DefinitionStrategy(BuiltinStrategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        given = spec.setdefault("names", {})
        kind = given.get("kind") or ""
        if not given.get("singular") and kind:
            given["singular"] = kind.lower()
        if not given.get("listKind") and kind:
            given["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        webhooks.default_client_config((spec["conversion"].get("webhook") or {}).get("clientConfig") or {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}
        _note_storage_version(obj)

    def begin_deletion(self, obj: Object, at: str) -> bool:
        """A definition stays until its objects are gone."""
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            return True
        metadata["deletionTimestamp"] = at
        metadata["finalizers"] = list(dict.fromkeys([*metadata.get("finalizers", ()), CLEANUP]))
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        status = obj.setdefault("status", {})
        status["conditions"] = set_condition(
            status.get("conditions"), "Terminating", "True", "InstanceDeletionPending", text, at
        )
        return True

    def prepare_update(self, new: Object, old: Object) -> None:
        new["status"] = dict(old.get("status") or {})
        _note_storage_version(new)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_definition(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = _definition(new)
        spec, stored = new["spec"], old["spec"]
        if _is_established(old):
            errors += rules.immutable(spec.get("scope"), stored.get("scope"), "spec.scope")
            errors += rules.immutable(spec["names"].get("kind"), stored["names"].get("kind"), "spec.names.kind")
        errors += rules.immutable(spec.get("group"), stored.get("group"), "spec.group")
        return errors + rules.immutable(spec["names"].get("plural"), stored["names"].get("plural"), "spec.names.plural")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return rule_warnings(obj)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        accepted = (new.get("status") or {}).get("acceptedNames") or {}
        return _name_rules(accepted, "status.acceptedNames")


def validate_definition(obj: Object) -> list[FieldError]:
    """All errors in a new, defaulted definition."""
    return _object_name(obj) + _definition(obj)


def _definition(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    if patterns.too_large(spec.get("versions")):
        text = f"the patterns of a definition may have {patterns.MAX_SIZE} instructions together"
        return [forbidden("spec.versions", text)]
    errors = _group(spec.get("group") or "")
    errors += rules.one_of(spec.get("scope") or "", "spec.scope", SCOPES)
    errors += _versions(spec)
    errors += [
        required(f"spec.names.{f}") for f in ("plural", "singular", "kind", "listKind") if not spec["names"].get(f)
    ]
    errors += _name_rules(spec["names"], "spec.names")
    errors += _shared_parts(spec)
    strategy = spec["conversion"].get("strategy") or ""
    if spec.get("preserveUnknownFields") and strategy != "None":
        detail = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid("spec.conversion.strategy", strategy, detail))
    errors += _conversion(spec["conversion"], "spec.conversion")
    errors += _stored_versions(obj)
    errors += _approval(obj)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    return errors


def _note_storage_version(obj: Object) -> None:
    """Every version that objects were ever stored in stays listed, until somebody has migrated them and removes it."""
    status = obj["status"]
    stored = list(status.get("storedVersions") or ())
    for version in obj["spec"].get("versions") or ():
        if version.get("storage"):
            if version.get("name") not in stored:
                stored.append(version.get("name"))
            break
    if stored:
        status["storedVersions"] = stored


def _is_established(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def _object_name(obj: Object) -> list[FieldError]:
    """All kinds check that the name is a subdomain; this checks which one."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    if name == f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}":
        return []
    return [invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def _group(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    wrong = names.dns_subdomain_errors(group)
    if wrong:
        return [invalid("spec.group", group, ",".join(wrong))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _versions(spec: Mapping[str, Any]) -> list[FieldError]:
    versions, path = spec.get("versions") or [], "spec.versions"
    if len(versions) > MAX_VERSIONS:
        return [too_many(path, len(versions), MAX_VERSIONS)]
    errors = [
        required(f"{path}[{i}].schema.openAPIV3Schema")
        for i, version in enumerate(versions)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None
    ]
    shared = _shared(versions)
    for i, version in enumerate(versions):
        errors += _version(version, f"{path}[{i}]", shared)
    listed = [version.get("name") for version in versions]
    if len(set(listed)) != len(listed):
        errors.append(invalid(path, _internal(versions, shared), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid(path, _internal(versions, shared), detail))
    if versions and listed[0]:
        errors += _label(listed[0], "spec.version")
    return errors


def _internal(versions: list[Mapping[str, Any]], shared: frozenset[str]) -> Any:
    """Versions as messages show them: with the names and order of Kubernetes' internal type, without shared fields."""
    if not versions:
        return None
    listed = [
        {
            "Name": version.get("name", ""),
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
        }
        | {f"{part[0].upper()}{part[1:]}": None if part in shared else version.get(part) for part in _PARTS}
        for version in versions
    ]
    return orjson.Fragment(orjson.dumps(listed))


def _shared(versions: list[Mapping[str, Any]]) -> frozenset[str]:
    """The fields that all versions have in common. In messages, Kubernetes names them as fields of the definition."""
    return frozenset(
        part for part in _PARTS if versions and all(version.get(part) == versions[0].get(part) for version in versions)
    )


def _version(version: Mapping[str, Any], path: str, shared: frozenset[str]) -> list[FieldError]:
    name = version.get("name") or ""
    errors = _label(name, f"{path}.name", required=True)
    errors += _deprecation(version, f"{path}.deprecationWarning")
    own = {part: value for part, value in version.items() if part not in shared}
    errors += _parts(own, path, "schema")
    return errors + _selectable_fields(own.get("selectableFields") or [], version, f"{path}.selectableFields")


def _shared_parts(spec: Mapping[str, Any]) -> list[FieldError]:
    versions = spec.get("versions") or []
    shared = _shared(versions)
    common = {part: versions[0].get(part) for part in shared}
    errors = _parts(common, "spec", "validation")
    if not common.get("selectableFields"):
        return errors
    return errors + _selectable_fields(common["selectableFields"], versions[0], "spec.selectableFields")


def _parts(version: Mapping[str, Any], path: str, schema_field: str) -> list[FieldError]:
    errors = []
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    if schema is not None:
        errors += validate_schema(schema, f"{path}.{schema_field}.openAPIV3Schema")
    if subresources.get("scale") is not None:
        errors += _scale(subresources["scale"], f"{path}.subresources.scale")
    columns = version.get("additionalPrinterColumns") or ()
    if len(columns) > MAX_COLUMNS:
        return [*errors, too_many(f"{path}.additionalPrinterColumns", len(columns), MAX_COLUMNS)]
    for i, column in enumerate(columns):
        errors += _column(column, f"{path}.additionalPrinterColumns[{i}]")
    return errors


def _deprecation(version: Mapping[str, Any], path: str) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [invalid(path, warning, "can only be set for deprecated versions")]
    found = []
    if len(warning.encode()) > MAX_DEPRECATION_WARNING:
        found.append(f"must be <= {MAX_DEPRECATION_WARNING} characters long")
    if not warning:
        found.append("must not be an empty string")
    odd = next((i for i, character in enumerate(warning) if not character.isprintable()), None)
    if odd is not None:
        index = len(warning[:odd].encode())
        rule = "must only contain printable UTF-8 characters"
        found.append(f"{rule}; non-printable character found at index {index}")
    return rules.messages(warning, path, found)


def _scale(scale: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    for field, parent in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text = scale.get(field) or ""
        if not text:
            errors.append(required(f"{path}.{field}"))
            continue
        found = _json_path(text, f"{path}.{field}")
        if not found and not text.startswith(parent):
            found = [invalid(f"{path}.{field}", text, f"should be a json path under {parent[:-1]}")]
        errors += found
    text = scale.get("labelSelectorPath") or ""
    if not text:
        return errors
    found = _json_path(text, f"{path}.labelSelectorPath")
    if not found and not text.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        found = [invalid(f"{path}.labelSelectorPath", text, detail)]
    return errors + found


def _json_path(text: str, path: str) -> list[FieldError]:
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]


def _column(column: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = [] if column.get("name") else [required(f"{path}.name")]
    kind, form, text = (column.get(field) or "" for field in ("type", "format", "jsonPath"))
    one_of = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        errors.append(required(f"{path}.type", one_of))
    elif kind not in COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", kind, one_of))
    if form and form not in COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    # The path in messages is that of the first version of the API.
    path = f"{path}.JSONPath"
    return errors + (_json_path(text, path) if text else [required(path)])


def _selectable_fields(fields: list[Mapping[str, Any]], version: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: set[str] = set()
    for i, field in enumerate(fields):
        text, at = field.get("jsonPath") or "", f"{path}[{i}].jsonPath"
        if not text:
            errors.append(required(at))
            continue
        found = _schema_at(schema, text)
        if found is None:
            errors.append(invalid(at, text, "is an invalid path: does not refer to a valid field"))
            continue
        if text.startswith(".metadata"):
            errors.append(invalid(at, text, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(invalid(at, text, detail))
        if text in seen:
            errors.append(duplicate(at, text))
        seen.add(text)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        errors.append(too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return errors


def _schema_at(schema: Mapping[str, Any], text: str) -> Mapping[str, Any] | None:
    if not text.startswith("."):
        return None
    found: Any = schema
    for key in text[1:].split("."):
        found = (found.get("properties") or {}).get(key)
        if not isinstance(found, dict):
            return None
    return found if isinstance(found, dict) else None


def _name_rules(given: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    for field in ("plural", "singular"):
        errors += _label(given.get(field) or "", f"{path}.{field}")
    for field in ("kind", "listKind"):
        value = given.get(field) or ""
        wrong = names.dns1035_label_errors(value.lower()) if value else []
        if wrong:
            detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            errors.append(invalid(f"{path}.{field}", value, detail))
    for field in ("shortNames", "categories"):
        count = len(given.get(field) or ())
        if count > MAX_NAMES:
            return [*errors, too_many(f"{path}.{field}", count, MAX_NAMES)]
    for i, name in enumerate(given.get("shortNames") or ()):
        errors += _label(name, f"{path}.shortNames[{i}]", required=True)
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        errors.append(invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same"))
    for i, name in enumerate(given.get("categories") or ()):
        errors += _label(name, f"{path}.categories[{i}]", required=True)
    return errors


def _label(value: str, path: str, *, required: bool = False) -> list[FieldError]:
    wrong = names.dns1035_label_errors(value) if value or required else []
    return [invalid(path, value, ",".join(wrong))] if wrong else []


def _conversion(conversion: Mapping[str, Any], path: str) -> list[FieldError]:
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    errors = rules.one_of(strategy, f"{path}.strategy", ["None", "Webhook"])
    # Paths in messages are those of the first version of the API.
    config_path, versions_path = f"{path}.webhookClientConfig", f"{path}.conversionReviewVersions"
    config = (webhook or {}).get("clientConfig")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if strategy != "Webhook":
        unset = "should not be set when strategy is not set to Webhook"
        errors += [forbidden(config_path, unset)] if config is not None else []
        return errors + ([forbidden(versions_path, unset)] if versions else [])
    if config is None:
        errors.append(required(config_path, "required when strategy is set to Webhook"))
    else:
        errors += webhooks.validate_client_config(config, config_path)
    return errors + _review_versions(versions, versions_path)


def _review_versions(versions: list[str], path: str) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors = []
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{i}]", version, "duplicate version"))
        else:
            errors += rules.messages(version, f"{path}[{i}]", names.dns1035_label_errors(version))
        seen.add(version)
    if not any(version in REVIEW_VERSIONS for version in versions):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors


def _stored_versions(obj: Object) -> list[FieldError]:
    path = "status.storedVersions"
    stored: list[str] = (obj.get("status") or {}).get("storedVersions") or []
    if not stored:
        return [invalid(path, stored or None, "must have at least one stored version")]
    versions = obj["spec"].get("versions") or []
    listed = [version.get("name") for version in versions]
    errors = [
        invalid(path, stored, f"must have the storage version {name}")
        for i, name in enumerate(listed)
        if versions[i].get("storage") and (name not in stored or name in listed[:i])
    ]
    for i, version in enumerate(stored):
        if version not in listed:
            detail = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            errors.append(invalid(f"{path}[{i}]", version, detail))
    return errors


def _approval(obj: Object) -> list[FieldError]:
    group = obj["spec"].get("group") or ""
    if not any(group == domain or group.endswith(f".{domain}") for domain in PROTECTED):
        return []
    path = f"metadata.annotations[{APPROVED}]"
    given = (obj["metadata"].get("annotations") or {}).get(APPROVED)
    if not given:
        detail = (
            f'protected groups must have approval annotation "{APPROVED}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        return [required(path, detail)]
    if given.startswith("unapproved") or "://" in given:
        return []
    detail = (
        f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting with '
        '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
    )
    return [invalid(path, given, detail)]
