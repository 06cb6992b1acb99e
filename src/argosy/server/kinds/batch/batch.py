"""batch/v1: Jobs and CronJobs. The rules for a Job's failure, success and replacement policies are in `job_policies`."""

import re
import zoneinfo
from collections.abc import Mapping
from functools import cache
from typing import Any

from argosy.kube import cron, names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid, not_supported, required, too_long
from argosy.server.kinds.apps import workloads
from argosy.server.kinds.batch import job_policies, job_status
from argosy.server.kinds.pods.podspec import default_pod_template, validate_pod_template
from argosy.server.kinds.pods.warnings import workload_warnings
from argosy.server.kinds.shared import domains
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill, fill_condition_times
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "batch"
STATUS = frozenset({"status"})

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
UID_LABELS = ("controller-uid", CONTROLLER_UID)
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")

MAX_INDEXED_PARALLELISM = 100_000
MAX_FAILED_INDEXES = 100_000
#: Above this many completions a Job with a limit per index must keep its status small.
MANY_COMPLETIONS = 100_000
MANY_PARALLELISM = 10_000
MANY_FAILED_INDEXES = 10_000
MAX_MANAGED_BY = 63
#: The controller appends a dash and ten digits to make the names of Jobs.
MAX_CRON_NAME = 52

_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}", re.ASCII).fullmatch


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            CronJobStrategy,
            GROUP,
            "v1",
            "CronJob",
            "cronjobs",
            short_names=("cj",),
            categories=("all",),
            subresources=STATUS,
        ),
        declare(schemas, JobStrategy, GROUP, "v1", "Job", "jobs", categories=("all",), subresources=STATUS),
    ]


class JobStrategy(BuiltinStrategy):
    validates_prefix = True
    orphan_by_default = True
    selectable = {"status.successful": lambda obj: str((obj.get("status") or {}).get("succeeded") or 0)}  # noqa: RUF012
    unselectable = 'field label "{}" not supported for Job'

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        unlimited = spec.get("backoffLimitPerIndex") is not None
        fill(spec, "parallelism", 1)
        fill(spec, "backoffLimit", rules.MAX_INT32 if unlimited else 6)
        fill(spec, "completionMode", "NonIndexed")
        fill(spec, "suspend", False)
        fill(spec, "podReplacementPolicy", _replacement(spec))
        fill(spec, "manualSelector", False)
        _default_job_spec(spec)
        fill_condition_times(obj, "lastProbeTime", "lastTransitionTime")
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            # One dict on purpose: labels generated for the template at creation are the Job's own as well.
            obj["metadata"]["labels"] = labels

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return _generated_selector(obj) + _job(obj["spec"], "spec") + _indexed_name(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, stored = new["spec"], old["spec"]
        # Kubernetes checks the spec twice here, and reports each error twice.
        errors = self.validate(new) + _job(spec, "spec")
        errors += _completions_kept(spec, stored)
        errors += workloads.selector_kept(new, old)
        errors += _template_kept(new, old)
        for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
            value, before = spec.get(field), stored.get(field)
            # An empty policy is a policy: its presence counts.
            if (value is None) != (before is None) or not rules.same(value, before):
                errors.append(invalid(f"spec.{field}", value, rules.IMMUTABLE))
        return errors

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return job_status.validate(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return workload_warnings(obj, old, "spec.template")


class CronJobStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        fill(spec, "suspend", False)
        fill(spec, "successfulJobsHistoryLimit", 3)
        fill(spec, "failedJobsHistoryLimit", 1)
        template = spec.setdefault("jobTemplate", {})
        template.setdefault("metadata", {})
        # The Job's own defaults are set when the Job is created; only those of its pods are filled in here.
        _default_job_spec(template.setdefault("spec", {}))
        template["spec"]["template"].setdefault("metadata", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        errors = _cron(obj["spec"], None)
        name = obj["metadata"].get("name", "")
        if len(name) > MAX_CRON_NAME:
            errors.append(invalid("metadata.name", name, f"must be no more than {MAX_CRON_NAME} characters"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _cron(new["spec"], old["spec"])

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return workload_warnings(obj, old, "spec.jobTemplate.spec.template")


def _replacement(spec: Mapping[str, Any]) -> str:
    """A pod failure policy must see all failures: then only failed pods are replaced, not terminating ones."""
    return "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"


def _default_job_spec(spec: Object) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_pod_template(spec.setdefault("template", {}))


def _generate_selector(obj: Object) -> None:
    """A Job selects its pods by its own uid, so that no two Jobs ever share pods. Labels given by hand stay, and are
    found wrong in validation."""
    metadata, spec = obj["metadata"], obj["spec"]
    template = spec["template"].setdefault("metadata", {})
    given = template.get("labels") or {}
    own = metadata.get("labels")
    shared = not own or own is given
    labels = dict(given)
    for label in NAME_LABELS:
        labels.setdefault(label, metadata["name"])
    for label in UID_LABELS:
        labels.setdefault(label, metadata["uid"])
    template["labels"] = labels
    if shared:
        metadata["labels"] = dict(labels)
    selector = spec.get("selector") or {}
    match_labels = {CONTROLLER_UID: metadata["uid"]} | (selector.get("matchLabels") or {})
    spec["selector"] = {**selector, "matchLabels": match_labels}


def _generated_selector(obj: Object) -> list[FieldError]:
    metadata, spec = obj["metadata"], obj["spec"]
    selector = spec.get("selector")
    if spec["manualSelector"] or selector is None:
        return []
    expected = dict.fromkeys(UID_LABELS, metadata.get("uid", "")) | dict.fromkeys(NAME_LABELS, metadata.get("name", ""))
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    errors = []
    for label in (UID_LABELS[0], NAME_LABELS[0], UID_LABELS[1], NAME_LABELS[1]):
        path = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            errors.append(required(path, f"must be '{expected[label]}'"))
        elif labels[label] != expected[label]:
            errors.append(invalid(path, labels, f"must be '{expected[label]}'"))
    if workloads.selector_matches(selector, expected) is False:
        errors.append(invalid("spec.selector", workloads.shown_selector(selector), "`selector` not auto-generated"))
    return errors


def _job(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = _job_spec(spec, path)
    if spec.get("selector") is None:
        errors.append(required(f"{path}.selector"))
    else:
        errors += rules.label_selector(spec["selector"], f"{path}.selector")
    return errors + workloads.selects_template(spec, path)


def _job_spec(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    """The rules for a Job and for the Job template of a CronJob."""
    errors: list[FieldError] = []
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    for field in (*counts, "backoffLimitPerIndex", "maxFailedIndexes"):
        errors += rules.nonnegative(spec.get(field) or 0, f"{path}.{field}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        errors += domains.prefixed_path(spec["managedBy"], f"{path}.managedBy")
        if len(spec["managedBy"]) > MAX_MANAGED_BY:
            errors.append(too_long(f"{path}.managedBy", MAX_MANAGED_BY))
    errors += _completion_mode(spec, path)
    errors += job_policies.failure(spec, f"{path}.podFailurePolicy")
    errors += job_policies.success(spec, f"{path}.successPolicy")
    errors += job_policies.replacement(spec, f"{path}.podReplacementPolicy")
    template = spec.get("template") or {}
    errors += validate_pod_template(template, f"{path}.template")
    return errors + _restart_policy(spec, template, f"{path}.template.spec.restartPolicy")


def _completion_mode(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"]))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    if mode in (None, "NonIndexed"):
        errors += [
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        ]
    return errors


def _indexed(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    completions, parallelism, failed = (spec.get(f) for f in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > MAX_INDEXED_PARALLELISM:
        detail = f"must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    if failed is not None:
        if completions is not None and failed > completions:
            detail = "must be less than or equal to completions"
            errors.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
        if failed > MAX_FAILED_INDEXES:
            detail = f"must be less than or equal to {MAX_FAILED_INDEXES}"
            errors.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    if completions is None or completions <= MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return errors
    when = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
    if failed is None:
        detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
        errors.append(required(f"{path}.maxFailedIndexes", detail))
    if parallelism is not None and parallelism > MANY_PARALLELISM:
        detail = f"must be less than or equal to {MANY_PARALLELISM} {when}"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    if failed is not None and failed > MANY_FAILED_INDEXES:
        detail = f"must be less than or equal to {MANY_FAILED_INDEXES} {when}"
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    return errors


def _restart_policy(spec: Mapping[str, Any], template: Mapping[str, Any], path: str) -> list[FieldError]:
    policy = (template.get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ["OnFailure", "Never"])]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _indexed_name(obj: Object) -> list[FieldError]:
    """Pods of an indexed Job are named after it and their index: the longest name must be valid."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    completions = spec.get("completions") or 0
    if spec["completionMode"] != "Indexed" or completions <= 0:
        return []
    longest = f"{name}-{completions - 1}"
    if not names.dns_label_errors(longest):
        return []
    return [invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {longest}")]


def _completions_kept(spec: Mapping[str, Any], stored: Mapping[str, Any]) -> list[FieldError]:
    completions = spec.get("completions")
    if spec["completionMode"] != "Indexed":
        return rules.immutable(completions, stored.get("completions"), "spec.completions")
    if completions is None or completions in (stored.get("completions"), spec["parallelism"]):
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _template_kept(new: Object, old: Object) -> list[FieldError]:
    """The template is immutable, but a suspended Job without pods may change its scheduling and resources."""
    template, stored = new["spec"]["template"], old["spec"]["template"]
    if not _is_at_rest(old):
        if old["spec"].get("suspend") and rules.same(template, stored):
            return []
        return rules.immutable(template, stored, "spec.template")
    pod, allowed = template["spec"], dict(stored["spec"])
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        _copy(pod, allowed, field)
    affinity = {key: value for key, value in (allowed.get("affinity") or {}).items() if key != "nodeAffinity"}
    _copy(pod.get("affinity") or {}, affinity, "nodeAffinity")
    allowed["affinity"] = affinity
    for field in ("containers", "initContainers"):
        allowed[field] = _resized(allowed.get(field) or [], pod.get(field) or [])
    return rules.immutable(pod, allowed, "spec.template.spec")


def _is_at_rest(job: Object) -> bool:
    status = job.get("status") or {}
    suspended = job_status.is_true(status, "Suspended")
    return bool(
        job["spec"].get("suspend") and (not status.get("startTime") or suspended) and not (status.get("active") or 0)
    )


def _copy(source: Mapping[str, Any], target: Object, field: str) -> None:
    target.pop(field, None)
    if field in source:
        target[field] = source[field]


def _resized(stored: list[Object], wanted: list[Object]) -> list[Object]:
    if [c.get("name") for c in stored] != [c.get("name") for c in wanted]:
        return stored
    return [{**old, "resources": new.get("resources")} for old, new in zip(stored, wanted, strict=True)]


def _cron(spec: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[FieldError]:
    zone = spec.get("timeZone")
    errors = _schedule(spec.get("schedule") or "", "TZ" in ((stored or {}).get("schedule") or ""), zone)
    errors += rules.nonnegative(spec.get("startingDeadlineSeconds") or 0, "spec.startingDeadlineSeconds")
    if zone is not None and (stored is None or zone != stored.get("timeZone")):
        errors += _time_zone(zone, "spec.timeZone")
    policy = spec["concurrencyPolicy"]
    if policy not in ("Allow", "Forbid", "Replace"):
        errors.append(not_supported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"]))
    job, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    errors += _job_spec(job, path)
    if job.get("selector") is not None:
        shown = workloads.shown_selector(job["selector"])
        errors.append(invalid(f"{path}.selector", shown, "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ["nil", "false"]))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += rules.nonnegative(spec[field], f"spec.{field}")
    return errors


def _schedule(schedule: str, zone_was_inside: bool, zone: str | None) -> list[FieldError]:
    path = "spec.schedule"
    if not schedule:
        return [required(path)]
    errors = []
    try:
        cron.parse(schedule)
    except cron.ScheduleError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" in schedule and not zone_was_inside:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, detail))
    elif "TZ" in schedule and zone is not None:
        errors.append(invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def _time_zone(zone: str, path: str) -> list[FieldError]:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART(part):
            return [unknown]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, detail)]
    return [unknown] if _zones() and zone not in _zones() else []


@cache
def _zones() -> frozenset[str]:
    """The time zones of this machine. Empty if it has no database: then any well-formed name is accepted."""
    return frozenset(zoneinfo.available_timezones())
