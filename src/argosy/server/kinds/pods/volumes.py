"""Volumes of pods: exactly one source each, and the rules of each source.

Most sources are a list of required fields and are written as a table; those with further rules have a function. Persistent
volumes (`volumes`) share them, with few differences.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from argosy.kube.quantity import parse_or_zero
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from argosy.server.kinds.core.claims import validate_claim_template
from argosy.server.kinds.pods.env import FIELDS_IN_VOLUMES, validate_field_ref, validate_resource_field_ref
from argosy.server.kinds.pods.paths import descending, file_mode, no_backsteps, not_reserved
from argosy.server.kinds.shared.meta_rules import dns_label, dns_subdomain, inclusive_range, label_selector

__all__ = ["REQUIRED_FIELDS", "SOURCES", "csi_driver", "required_fields", "validate_source", "validate_volumes"]

Object = dict[str, Any]
Rule = Callable[[Object, str], list[FieldError]]

#: Sources whose only rule is that these fields are set.
REQUIRED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "persistentVolumeClaim": ("claimName",),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "cinder": ("volumeID",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "quobyte": ("registry", "volume"),
}
_HOST_PATH_TYPES = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_KEY_TYPES = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"]
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$")
_EUI_NAA = re.compile(r"^(eui.[A-Za-z0-9]{16}|naa.[A-Za-z0-9]{32})$")


def validate_volumes(volumes: list[Object], path: str, pod_name: str) -> tuple[dict[str, Object], list[FieldError]]:
    """The valid volumes by name, for mounts to refer to, and the errors of the others."""
    sound: dict[str, Object] = {}
    errors: list[FieldError] = []
    created = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and "ephemeral" in volume}
    for i, volume in enumerate(volumes):
        at, name = f"{path}[{i}]", volume.get("name", "")
        wrong = validate_source(volume, at, SOURCES)
        wrong += dns_label(name, f"{at}.name") if name else [required(f"{at}.name")]
        if name in sound:
            wrong.append(duplicate(f"{at}.name", name))
        if wrong:
            errors += wrong
        else:
            sound[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{at}.persistentVolumeClaim.claimName", claim, detail))
    return sound, errors


def validate_source(volume: Object, path: str, sources: Mapping[str, Rule]) -> list[FieldError]:
    """Exactly one of the sources, which is checked by its own rules."""
    used = [name for name in sources if volume.get(name) is not None]
    if not used:
        return [required(path, "must specify a volume type")]
    first, *more = used
    errors = sources[first](volume[first], f"{path}.{first}")
    return errors + [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in more]


def required_fields(*fields: str) -> Rule:
    """The rule of a source that only needs these fields."""
    return lambda source, path: [required(f"{path}.{name}") for name in fields if not source.get(name)]


def _empty_dir(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_or_zero(limit).nanos < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def host_path(source: Object, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [required(f"{path}.path")]
    errors = no_backsteps(source["path"], f"{path}.path")
    kind = source.get("type", "")
    if kind not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return errors


def _git_repo(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("repository") else [required(f"{path}.repository")]
    return errors + descending(source.get("directory", ""), f"{path}.directory")


def _key_volume(name_field: str) -> Rule:
    """Secrets and config maps: the object's name under `name_field`, a mode, and keys mapped to paths."""

    def rule(source: Object, path: str) -> list[FieldError]:
        errors = [] if source.get(name_field) else [required(f"{path}.{name_field}")]
        errors += file_mode(source.get("defaultMode"), f"{path}.defaultMode")
        for i, item in enumerate(source.get("items") or ()):
            errors += _key_to_path(item, f"{path}.items[{i}]")
        return errors

    return rule


def _key_to_path(item: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    errors += not_reserved(item.get("path", ""), f"{path}.path")
    return errors + file_mode(item.get("mode"), f"{path}.mode")


def nfs(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("server", "path") if not source.get(name)]
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def iscsi(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("targetPortal", "iqn") if not source.get(name)]
    if source.get("iqn"):
        errors += _iqn(source["iqn"], f"{path}.iqn")
    errors += inclusive_range(source.get("lun", 0), f"{path}.lun", 0, 255)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(required(f"{path}.secretRef"))
    if source.get("initiatorName") is not None:
        errors += _iqn(source["initiatorName"], f"{path}.initiatorname")
    return errors


def _iqn(name: str, path: str) -> list[FieldError]:
    if not name.startswith(("iqn", "eui", "naa")):
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    pattern = _IQN if name.startswith("iqn") else _EUI_NAA
    return [] if pattern.search(name) else [invalid(path, name, "must be valid format")]


def fibre_channel(source: Object, path: str) -> list[FieldError]:
    names, ids = source.get("targetWWNs"), source.get("wwids")
    errors = []
    if not names and not ids:
        errors.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if names and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", names, detail))
    if names and source.get("lun") is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names:
        errors += inclusive_range(source["lun"], f"{path}.lun", 0, 255)
    return errors


def flex_volume(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("driver") else [required(f"{path}.driver")]
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, detail))
    return errors


def flocker(source: Object, path: str) -> list[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        return [required(path, "one of datasetName and datasetUUID is required")]
    errors = []
    if name and uuid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def azure_disk(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("diskName", "diskURI") if not source.get(name)]
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if caching is not None and caching not in ("None", "ReadOnly", "ReadWrite"):
        errors.append(not_supported(f"{path}.cachingMode", caching, ["None", "ReadOnly", "ReadWrite"]))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        errors.append(not_supported(f"{path}.kind", kind, ["Dedicated", "Managed", "Shared"]))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
        errors.append(not_supported(f"{path}.diskURI", uri, [form]))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        errors.append(not_supported(f"{path}.diskURI", uri, [form]))
    return errors


def storage_os(source: Object, path: str) -> list[FieldError]:
    name, namespace, secret = source.get("volumeName"), source.get("volumeNamespace"), source.get("secretRef")
    errors = dns_label(name, f"{path}.volumeName") if name else [required(f"{path}.volumeName")]
    if namespace:
        errors += dns_label(namespace, f"{path}.volumeNamespace")
    if secret is not None and not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    return errors


def csi_driver(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = []
    if len(name) > 63:
        errors.append(FieldError("FieldValueTooLong", path, "", "may not be more than 63 bytes"))
    return errors + [invalid(path, name, wrong.detail) for wrong in dns_subdomain(name.lower(), path)]


def _csi(source: Object, path: str) -> list[FieldError]:
    errors = csi_driver(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name", "")
        errors += dns_subdomain(name, f"{path}.name") if name else [required(f"{path}.nodePublishSecretRef.name")]
    return errors


def _ephemeral(source: Object, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return validate_claim_template(template, f"{path}.volumeClaimTemplate")


def _image(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("reference") else [required(f"{path}.reference")]
    policy = source.get("pullPolicy", "")
    if policy not in _PULL_POLICIES:
        errors.append(not_supported(f"{path}.pullPolicy", policy, list(_PULL_POLICIES)))
    return errors


def _downward_api(source: Object, path: str) -> list[FieldError]:
    errors = file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        errors += _downward_file(item, path)
    return errors


def _downward_file(item: Object, path: str) -> list[FieldError]:
    """Kubernetes names the volume, not the item, in these."""
    errors = [] if item.get("path") else [required(f"{path}.path")]
    errors += not_reserved(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += validate_field_ref(field, f"{path}.fieldRef", FIELDS_IN_VOLUMES)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        at = f"{path}.resourceFieldRef"
        named = bool(resource.get("containerName"))
        errors += validate_resource_field_ref(resource, at) if named else [required(f"{at}.containerName")]
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + file_mode(item.get("mode"), f"{path}.mode")


def _projected(source: Object, path: str) -> list[FieldError]:
    errors = file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    seen: set[str] = set()
    for i, projection in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{i}]"
        for name, rule in _PROJECTIONS.items():
            if projection.get(name) is not None:
                errors += rule(projection[name], f"{at}.{name}", path)
                errors += _conflicts(projection[name], seen, path)
        if sum(projection.get(name) is not None for name in _PROJECTIONS) > 1:
            errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _conflicts(projection: Object, seen: set[str], path: str) -> list[FieldError]:
    named = ("path", "credentialBundlePath", "keyPath", "certificateChainPath")
    paths = [item.get("path", "") for item in projection.get("items") or ()]
    # A token's own path is left out, as in Kubernetes.
    if "expirationSeconds" not in projection:
        paths += [projection.get(name, "") for name in named]
    errors = []
    for each in paths:
        if each and each in seen:
            errors.append(invalid(path, projection.get("name") or each, "conflicting duplicate paths"))
        seen.add(each)
    return errors


def _projected_keys(projection: Object, path: str, _volume: str) -> list[FieldError]:
    errors = [] if projection.get("name") else [required(f"{path}.name")]
    for i, item in enumerate(projection.get("items") or ()):
        errors += _key_to_path(item, f"{path}.items[{i}]")
    return errors


def _projected_downward(projection: Object, path: str, _volume: str) -> list[FieldError]:
    errors = []
    for item in projection.get("items") or ():
        errors += _downward_file(item, path)
    return errors


def _projected_token(projection: Object, path: str, volume: str) -> list[FieldError]:
    seconds, at = projection.get("expirationSeconds", 0), f"{path}.expirationSeconds"
    errors = []
    if seconds < 600:
        errors.append(invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 2**32:
        errors.append(invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    where = f"{volume}.path"
    return errors + (not_reserved(projection["path"], where) if projection.get("path") else [required(where)])


def _projected_trust_bundle(projection: Object, path: str, _volume: str) -> list[FieldError]:
    name, signer, selector = (projection.get(key) for key in ("name", "signerName", "labelSelector"))
    errors = []
    if name is not None and signer is not None:
        errors.append(invalid(path, projection, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            errors.append(required(f"{path}.name", "must be a valid object name"))
        if selector is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{path}.labelSelector", selector, detail))
    elif signer is not None:
        if not signer:
            errors.append(required(f"{path}.signerName", "must be a valid signer name"))
        errors += label_selector(selector, f"{path}.labelSelector")
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    if not projection.get("path"):
        errors.append(required(f"{path}.path"))
    return errors + not_reserved(projection.get("path", ""), f"{path}.path")


def _projected_certificate(projection: Object, path: str, _volume: str) -> list[FieldError]:
    errors = [] if projection.get("signerName") else [required(f"{path}.signerName")]
    if projection.get("keyType", "") not in _KEY_TYPES:
        errors.append(not_supported(f"{path}.keyType", projection.get("keyType", ""), _KEY_TYPES))
    seconds = projection.get("maxExpirationSeconds")
    if seconds is not None and seconds < 3600:
        detail = "if provided, maxExpirationSeconds must be >= 3600"
        errors.append(invalid(f"{path}.maxExpirationSeconds", seconds, detail))
    files = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if projection.get(name)]
    for name in files:
        errors += not_reserved(projection[name], f"{path}.{name}")
    if not files:
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(path, detail))
    return errors


_PROJECTIONS: Mapping[str, Callable[[Object, str, str], list[FieldError]]] = {
    "secret": _projected_keys,
    "configMap": _projected_keys,
    "downwardAPI": _projected_downward,
    "serviceAccountToken": _projected_token,
    "clusterTrustBundle": _projected_trust_bundle,
    "podCertificate": _projected_certificate,
}

#: In Kubernetes' order: the first one found is the volume's, the others are too many.
SOURCES: Mapping[str, Rule] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "secret": _key_volume("secretName"),
    "nfs": nfs,
    "iscsi": iscsi,
    "flocker": flocker,
    "downwardAPI": _downward_api,
    "fc": fibre_channel,
    "flexVolume": flex_volume,
    "configMap": _key_volume("name"),
    "azureDisk": azure_disk,
    "storageos": storage_os,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
    **{name: required_fields(*fields) for name, fields in REQUIRED_FIELDS.items()},
}
