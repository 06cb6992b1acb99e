"""Webhook payloads: the requests to a scheduling plugin behind HTTP, and the meaning of its answers.

Two forms. `v1alpha1` is KubeAdmiral's: filter and score ask about one cluster per call, select about all in one. A webhook
that also lists `v1alpha1-batch` before it in its payloadVersions is asked about many clusters per call; schedulers that do not
know that form skip it. Select is the same in both. Pure: `control.scheduling.webhooks` sends the calls.

Answers are not trusted: types are checked, unknown names are errors, and only a few different errors are reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from argosy.api.clusters import FederatedCluster
from argosy.fleet.member import CPU
from argosy.fleet.snapshot import MEMORY, Column, Rows
from argosy.kube.objects import DecodeError, decode
from argosy.kube.quantity import BINARY_SI, Quantity
from argosy.plan.scheduling.framework import Ask, Reply
from argosy.plan.scheduling.unit import EPHEMERAL_STORAGE, Unit

__all__ = [
    "BATCH",
    "SINGLE",
    "Answer",
    "Call",
    "ParsedAnswer",
    "Question",
    "WebhookError",
    "calls",
    "cluster_payload",
    "failed",
    "payload_version",
    "question_of",
    "read",
    "reply",
    "scheduling_unit",
    "short",
    "url_of",
]

SINGLE: Final = "v1alpha1"
BATCH: Final = "v1alpha1-batch"
#: Clusters in one call of the batch form.
BATCH_SIZE: Final = 100
NO_ANSWER: Final = "the answer says nothing about this cluster"
OTHER_ERRORS: Final = "further errors"
UNSAID: Final = "an error without a message"
#: Largest number of different errors reported for one phase; a webhook may return another one for every cluster.
_TOLD: Final = 8
_LONGEST: Final = 200
#: A hundred times as much still fits in 64 bits.
_LARGEST_SCORE: Final = 2**56


class WebhookError(Exception):
    """A call failed, or its answer cannot be used; the message says why."""


class Question(NamedTuple):
    """An Ask without the fleet: it may be queued for a while, and needs only the names. `clusters` are those asked about."""

    plugin: str
    phase: str
    unit: Unit
    #: All clusters of the fleet; `rows` are positions in it.
    names: tuple[str, ...]
    rows: Rows
    scores: Column

    @property
    def clusters(self) -> list[str]:
        return [self.names[row] for row in self.rows.tolist()]

    def covers(self, other: Any) -> bool:
        """Whether an answer to this question also answers the other: both ask the same about the same clusters.

        Scores do not count: recent ones are good enough, and they change so often that no answer would ever be current.
        """
        return (
            isinstance(other, Question)
            and (self.plugin, self.phase) == (other.plugin, other.phase)
            and self.names == other.names
            and np.array_equal(np.sort(self.rows), np.sort(other.rows))
            and scheduling_unit(self.unit) == scheduling_unit(other.unit)
        )


def question_of(ask: Ask) -> Question:
    return Question(ask.plugin.name, ask.plugin.phase, ask.unit, ask.fleet.names, ask.ranked.rows, ask.ranked.scores)


class Call(NamedTuple):
    """One request, and the positions in the question's clusters that its answer is about.

    The body is in parts that many requests share: clusters are long, and there may be hundreds of requests.
    """

    parts: tuple[bytes, ...]
    about: tuple[int, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


class Answer(NamedTuple):
    """The result of a call: the body of the response, or why there is none."""

    call: Call
    body: bytes = b""
    error: str = ""


class ParsedAnswer(NamedTuple):
    """The content of an answer, which is small however long the answer was.

    `verdicts` are by position in the question's clusters: whether the cluster passed, or its score, or an error. For select,
    `rows` are the selected rows, and `error` is why there are none.
    """

    verdicts: Mapping[int, bool | int | str] = {}
    rows: tuple[int, ...] = ()
    error: str = ""


def payload_version(advertised: Iterable[str]) -> str | None:
    """The payload version to use: the first advertised one that is known here."""
    return next((version for version in advertised if version in (SINGLE, BATCH)), None)


def url_of(prefix: str, path: str) -> str:
    """Joins the two with exactly one slash."""
    return f"{prefix.rstrip('/')}/{path.lstrip('/')}" if prefix else path


# What is asked.


def scheduling_unit(unit: Unit) -> dict[str, Any]:
    """The unit as webhooks know it. Empty fields are left out, except the current clusters."""
    affinity = unit.affinity
    optional: dict[str, Any] = {
        "namespace": unit.namespace,
        "labels": unit.labels,
        "annotations": unit.annotations,
        "clusterSelector": unit.cluster_selector,
        "clusterAffinity": affinity.required if affinity is not None else (),
        "tolerations": unit.tolerations,
        "placements": [_placement(unit, cluster) for cluster in sorted(unit.cluster_names)],
    }
    if unit.divides:
        optional["currentReplicaDistribution"] = {name: number or 0 for name, number in sorted(unit.current.items())}
    payload: dict[str, Any] = {
        "apiVersion": f"{unit.group}/{unit.version}" if unit.group else unit.version,
        "kind": unit.kind,
        "resource": unit.resource,
        "name": unit.name,
        "schedulingMode": unit.mode,
        "resourceRequest": _resource_request(unit),
        "currentClusters": sorted(unit.current),
        **{key: value for key, value in optional.items() if value},
    }
    if unit.desired_replicas is not None:
        payload["desiredReplicas"] = unit.desired_replicas
    if unit.max_clusters is not None:
        payload["maxClusters"] = unit.max_clusters
    return payload


def _placement(unit: Unit, cluster: str) -> dict[str, Any]:
    stated = (
        ("minReplicas", unit.min_replicas),
        ("maxReplicas", unit.max_replicas),
        ("weight", unit.weights),
    )
    return {"cluster": cluster, "preferences": {key: of[cluster] for key, of in stated if cluster in of}}


def _resource_request(unit: Unit) -> dict[str, str]:
    request = unit.request
    amounts = {
        CPU: Quantity.from_milli(request.milli_cpu),
        MEMORY: Quantity.from_value(request.memory, BINARY_SI),
        EPHEMERAL_STORAGE: Quantity.from_value(request.ephemeral_storage, BINARY_SI),
        **{name: Quantity.from_value(amount) for name, amount in sorted(request.scalars.items())},
    }
    return {name: amount.canonical() for name, amount in amounts.items()}


def cluster_payload(cluster: FederatedCluster, version: str) -> bytes:
    """The cluster as JSON. In the batch form without its APIs, which are the largest part and rarely needed."""
    shown = msgspec.to_builtins(cluster)
    shown["spec"].setdefault("useServiceAccount", False)
    if version == BATCH:
        shown["status"].pop("apiResourceTypes", None)
    return msgspec.json.encode(shown)


def calls(question: Question, cluster: Callable[[str], bytes | None], version: str) -> list[Call]:
    """The requests that make up a question. A cluster without a payload (it has just left) is not asked about."""
    known = [(at, body) for at, name in enumerate(question.clusters) if (body := cluster(name)) is not None]
    head = b'{"schedulingUnit":' + msgspec.json.encode(scheduling_unit(question.unit))
    if question.phase == "select":
        scores = question.scores.tolist()
        scored = [(b'{"cluster":', body, b',"score":%d}' % scores[at]) for at, body in known]
        return [Call((head, b',"clusterScores":[', *_listed(scored), b"]}"), tuple(at for at, _ in known))]
    if version == SINGLE:
        return [Call((head, b',"cluster":', body, b"}"), (at,)) for at, body in known]
    batches = [known[start : start + BATCH_SIZE] for start in range(0, len(known), BATCH_SIZE)]
    return [
        Call((head, b',"clusters":[', *_listed([(body,) for _, body in some]), b"]}"), tuple(at for at, _ in some))
        for some in batches
    ]


def _listed(items: Sequence[tuple[bytes, ...]]) -> Iterator[bytes]:
    for number, item in enumerate(items):
        if number:
            yield b","
        yield from item


# What is answered.


class _Filtered(msgspec.Struct):
    selected: bool = False
    error: str = ""


class _Scored(msgspec.Struct):
    score: int = 0
    error: str = ""


class _Selected(msgspec.Struct, rename="camel"):
    selected_cluster_names: list[str] = []
    error: str = ""


class _NamedFiltered(_Filtered):
    name: str = ""


class _NamedScored(_Scored):
    name: str = ""


class _ManyFiltered(msgspec.Struct):
    clusters: list[_NamedFiltered] = []
    error: str = ""


class _ManyScored(msgspec.Struct):
    clusters: list[_NamedScored] = []
    error: str = ""


def read(question: Question, answer: Answer, version: str) -> ParsedAnswer:
    """The content of one answer; the answer itself need not be kept."""
    if question.phase == "select":
        try:
            return ParsedAnswer(rows=_chosen(question, answer))
        except WebhookError as error:
            return ParsedAnswer(error=str(error))
    return ParsedAnswer(_verdicts(question, answer, version))


def reply(question: Question, answers: Iterable[ParsedAnswer]) -> Reply:
    """The reply made of the answers to all calls of a question."""
    if question.phase == "filter":
        return _filter_reply(question, answers)
    try:
        if question.phase == "score":
            return _score_reply(question, answers)
        return _select_reply(answers)
    except WebhookError as error:
        return Reply(error=str(error))


def failed(question: Question, why: str) -> Reply:
    """The reply if the question could not be asked."""
    return Reply(error=_of(question, why) if question.phase == "filter" else why)


def _of(question: Question, message: str) -> str:
    """Refusals are listed without the plugin's name, so the reason includes it."""
    return f"webhookPlugin({question.plugin}): {message}"


def _filter_reply(question: Question, answers: Iterable[ParsedAnswer]) -> Reply:
    """Without an answer a cluster is not selected. If the unit runs there, the whole question fails instead, so it stays."""
    clusters = question.clusters
    passed = np.zeros(len(clusters), dtype=np.bool_)
    errors = dict.fromkeys(range(len(clusters)), NO_ANSWER)
    for each in answers:
        for at, verdict in each.verdicts.items():
            if isinstance(verdict, str):
                errors[at] = verdict
                continue
            del errors[at]
            passed[at] = verdict
    for at, error in errors.items():
        if clusters[at] in question.unit.current:
            return failed(question, f"{error} (asked about {clusters[at]}, where the object is)")
    return Reply(passed=passed, errors={at: _of(question, text) for at, text in _few(errors).items()})


def _score_reply(question: Question, answers: Iterable[ParsedAnswer]) -> Reply:
    clusters = question.clusters
    scores = np.zeros(len(clusters), dtype=np.int64)
    missing = set(range(len(clusters)))
    for each in answers:
        for at, verdict in each.verdicts.items():
            if isinstance(verdict, str):
                raise WebhookError(verdict)
            scores[at] = verdict
            missing.discard(at)
    if missing:
        raise WebhookError(f"{NO_ANSWER}: {clusters[min(missing)]}")
    return Reply(scores=scores)


def _select_reply(answers: Iterable[ParsedAnswer]) -> Reply:
    (chosen,) = answers
    if chosen.error:
        raise WebhookError(chosen.error)
    return Reply(rows=np.array(chosen.rows, dtype=np.intp))


def _chosen(question: Question, answer: Answer) -> tuple[int, ...]:
    if answer.error:
        raise WebhookError(answer.error)
    chosen = _decoded(answer.body, _Selected)
    if chosen.error:
        raise WebhookError(_complaint(chosen.error))
    clusters = question.clusters
    row_of = {clusters[at]: int(question.rows[at]) for at in answer.call.about}
    rows = []
    for name in chosen.selected_cluster_names:
        if name not in row_of:
            raise WebhookError(f"it selected {short(name)!r}, which is not among the clusters it was given")
        rows.append(row_of.pop(name))
    return tuple(rows)


def _verdicts(question: Question, answer: Answer, version: str) -> dict[int, bool | int | str]:
    about = answer.call.about
    if answer.error:
        return dict.fromkeys(about, answer.error)
    one, many = (_Filtered, _ManyFiltered) if question.phase == "filter" else (_Scored, _ManyScored)
    try:
        if version == SINGLE:
            return {about[0]: _verdict(_decoded(answer.body, one))}
        told = _decoded(answer.body, many)
        if told.error:
            raise WebhookError(_complaint(told.error))
        position = {question.names[question.rows[at]]: at for at in about}
        verdicts: dict[int, bool | int | str] = {}
        for each in told.clusters:
            if each.name not in position:
                raise WebhookError(f"it answered about {short(each.name)!r}, which it was not asked about")
            verdicts[position.pop(each.name)] = _verdict(each)
    except WebhookError as error:
        return dict.fromkeys(about, str(error))
    return verdicts


def _verdict(told: _Filtered | _Scored) -> bool | int | str:
    if told.error:
        return _complaint(told.error)
    if isinstance(told, _Filtered):
        return told.selected
    if abs(told.score) > _LARGEST_SCORE:
        return f"a score of {str(told.score)[:30]} is out of range"
    return told.score


def _decoded(body: bytes, into: Any) -> Any:
    try:
        return decode(body, into)
    except DecodeError as error:
        raise WebhookError(f"the answer cannot be read: {short(str(error))}") from None


def _few(errors: dict[int, str]) -> dict[int, str]:
    """Explanations group clusters by reason; a different reason for every cluster would make them too long."""
    kept: set[str] = set()
    few = {}
    for position, text in errors.items():
        if text in kept or len(kept) < _TOLD:
            kept.add(text)
            few[position] = text
        else:
            few[position] = OTHER_ERRORS
    return few


def _complaint(text: str) -> str:
    """An error without printable text is still an error."""
    return short(text) or UNSAID


def short(text: str) -> str:
    """An external text as one line of bounded length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * _LONGEST]).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
