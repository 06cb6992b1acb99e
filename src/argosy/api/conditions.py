"""Conditions, propagation states and event reasons of the federation API: the texts users and tools match on."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

# FederatedCluster conditions: types, then (reason, message) of each state.
JOINED: Final = "Joined"
READY: Final = "Ready"
OFFLINE: Final = "Offline"

CLUSTER_JOINED: Final = ("ClusterJoined", "cluster has joined the federation")
TOKEN_NOT_OBTAINED_REASON: Final = "TokenNotObtained"
JOIN_TIMEOUT_REASON: Final = "JoinTimeoutExceeded"
JOIN_TIMEOUT_MESSAGE: Final = "Timeout exceeded when joining the federation, message from last attempt: {last}"
CLUSTER_UNJOINABLE: Final = (
    "ClusterUnjoinable",
    "Cluster is unjoinable (check if cluster is already joined to another federation)",
)
CLUSTER_READY: Final = ("ClusterReady", "Cluster is ready")
HEALTHZ_NOT_OK: Final = ("HealthzNotOK", "/healthz responded without ok")
RESOURCE_COLLECTION_FAILED_REASON: Final = "ClusterResourceCollectionFailed"
RESOURCE_COLLECTION_FAILED_MESSAGE: Final = "Failed to collect cluster resources: {error}"
API_DISCOVERY_FAILED_REASON: Final = "ClusterAPIDiscoveryFailed"
API_DISCOVERY_FAILED_MESSAGE: Final = "Failed to discover cluster API resources: {error}"
TOO_MANY_REQUESTS_REASON: Final = "TooManyRequests"
TOO_MANY_REQUESTS_MESSAGE: Final = "Cluster asks for fewer requests: {error}"
CLUSTER_NOT_REACHABLE: Final = ("ClusterNotReachable", "Cluster is not reachable")
CLUSTER_REACHABLE: Final = ("ClusterReachable", "Cluster is reachable")
#: Argosy's own, present after the first problem: False while the member refuses our credentials or lacks rights for us.
AUTHORIZED: Final = "Authorized"
AUTHORIZED_AGAIN: Final = ("AccessGranted", "The member accepts the credentials, and no right is missing")
#: Also the reason of Ready: another cluster answers at the member's address.
CLUSTER_IDENTITY_CHANGED_REASON: Final = "ClusterIdentityChanged"
CREDENTIALS_WITHHELD_REASON: Final = "CredentialsWithheld"
CREDENTIALS_UNUSABLE_REASON: Final = "CredentialsUnusable"
#: The API endpoint in the spec was changed and does not answer.
ENDPOINT_UNREACHABLE_REASON: Final = "EndpointUnreachable"
CREDENTIALS_REJECTED_REASON: Final = "CredentialsRejected"
TOKEN_NOT_RENEWED_REASON: Final = "TokenNotRenewed"
ROLE_OUTDATED_REASON: Final = "RoleOutdated"
RIGHTS_MISSING_REASON: Final = "RightsMissing"
#: Argosy's own, present after the first problem: False while the member's answers cannot be understood.
ANSWERS_READABLE: Final = "AnswersReadable"
ANSWERS_READABLE_AGAIN: Final = ("AnswersReadable", "What the member answers can be understood")
BAD_ANSWER_REASON: Final = "BadAnswer"
#: Argosy's own, present after the first problem: False from the first probe that failed or watch that died until the member is
#: heard of again. Its last transition is when the member was heard of last. Ready and Offline follow later, when it has lasted.
RESPONDING: Final = "Responding"
NOT_HEARD_OF_REASON: Final = "NotHeardOf"
NOT_HEARD_OF_MESSAGE: Final = "not heard of since {since}"
WATCHES_FAIL: Final = "it answers, but watches on it fail"
RESPONDING_AGAIN: Final = ("Responding", "The member answers")
#: Argosy's own, on a cluster that is leaving and whose member could not be released; its last probe is the last attempt.
RELEASED: Final = "Released"
NOT_RELEASED_REASON: Final = "MemberNotReleased"
#: After these, joining is not retried until the object is created anew.
TERMINAL_JOIN_REASONS: Final = frozenset({JOIN_TIMEOUT_REASON, CLUSTER_UNJOINABLE[0]})

# FederatedObject condition.
PROPAGATED: Final = "Propagated"
CHECK_CLUSTERS: Final = "CheckClusters"
#: Argosy's own, on a federated object: False while overrides cannot be applied in some cluster or in any, absent otherwise.
OVERRIDES_APPLIED: Final = "OverridesApplied"


#: Argosy's own, on a federated object: True while copies have fields that others changed, absent otherwise. The policy wants
#: these reported, or they could not be repaired.
DRIFTED: Final = "Drifted"
DRIFT_REPORTED_REASON: Final = "Reported"
DRIFT_NOT_REPAIRED_REASON: Final = "NotRepaired"


class Refused(StrEnum):
    """Why nothing of a federated object is sent to any member: reason of its condition and of its event."""

    TEMPLATE = "TemplateRefused"
    NO_TYPE_CONFIG = "NoTypeConfig"
    NO_SOURCE = "SourceMissing"


#: Condition on an aggregated status while members are unreachable and their last known counts are shown.
MEMBERS_UNREACHABLE: Final = "MembersUnreachable"
#: Condition on a workload's aggregated status while pods are not ready for a known reason: that of most of them.
PODS_FAILING: Final = "PodsFailing"
#: Reasons of conditions that would be true by the members' words, and are not by what is known of the object as a whole.
HELD_REASON: Final = "Held"
NOT_AS_WANTED_REASON: Final = "NotAsWanted"


class Propagation(StrEnum):
    """State of one federated object in one cluster (`status.clusters[].status`), including those only KubeAdmiral writes."""

    OK = "OK"
    PENDING_CREATE = "PendingCreate"
    WAITING_FOR_REMOVAL = "WaitingForRemoval"
    WAITING_FOR_CASCADING_DELETION = "WaitingForCascadingDeletion"
    CLUSTER_NOT_READY = "ClusterNotReady"
    CLUSTER_TERMINATING = "ClusterTerminating"
    FINALIZER_CHECK_FAILED = "FinalizerCheckFailed"
    CACHED_RETRIEVAL_FAILED = "CachedRetrievalFailed"
    RETRIEVAL_FAILED = "RetrievalFailed"
    CLIENT_RETRIEVAL_FAILED = "ClientRetrievalFailed"
    COMPUTE_RESOURCE_FAILED = "ComputeResourceFailed"
    APPLY_OVERRIDES_FAILED = "ApplyOverridesFailed"
    FIELD_RETENTION_FAILED = "FieldRetentionFailed"
    VERSION_RETRIEVAL_FAILED = "VersionRetrievalFailed"
    CREATION_FAILED = "CreationFailed"
    UPDATE_FAILED = "UpdateFailed"
    DELETION_FAILED = "DeletionFailed"
    LABEL_REMOVAL_FAILED = "LabelRemovalFailed"
    CREATION_TIMED_OUT = "CreationTimedOut"
    UPDATE_TIMED_OUT = "UpdateTimedOut"
    DELETION_TIMED_OUT = "DeletionTimedOut"
    LABEL_REMOVAL_TIMED_OUT = "LabelRemovalTimedOut"
    ALREADY_EXISTS = "AlreadyExists"
    MANAGED_LABEL_FALSE = "ManagedLabelFalse"
    SET_LAST_REPLICASET_NAME_FAILED = "SetLastReplicasetNameFailed"


#: Events about these states have another reason, as in KubeAdmiral; all others have the state itself.
OPERATION_FAILED: Final[Mapping[str, str]] = {
    Propagation.CREATION_FAILED: "CreateInClusterFailed",
    Propagation.UPDATE_FAILED: "UpdateInClusterFailed",
    Propagation.DELETION_FAILED: "DeleteInClusterFailed",
    Propagation.LABEL_REMOVAL_FAILED: "RemoveManagedLabelFromInClusterFailed",
}


class EventReason(StrEnum):
    """Reasons of the events recorded on federated objects, their sources, and clusters."""

    SCHEDULE_FEDERATED_OBJECT = "ScheduleFederatedObject"
    WAITING_FOR_CONTROLLERS = "WaitingForControllers"
    WITHOUT_EFFECT = "WithoutEffect"
    PARSE_MIGRATION_CONFIGURATION = "ParseMigrationConfiguration"
    MATCH_OVERRIDE_POLICY_FAILED = "MatchOverridePolicyFailed"
    PARSE_OVERRIDE_POLICY_FAILED = "ParseOverridePolicyFailed"
    OVERRIDE_POLICY_APPLIED = "OverridePolicyApplied"
    FAILED_INFER_FOLLOWERS = "FailedInferFollowers"
    FOLLOWERS_MISSING = "FollowersMissing"
    FOLLOWER_PLACED = "FollowerPlaced"
    BUDGET_DIVIDED = "BudgetDivided"
    RELEASED = "Released"
    TYPE_CONFIG_MADE = "TypeConfigMade"
    TYPE_CONFIG_LEFT = "TypeConfigLeft"
    REMOVAL_HELD = "RemovalHeld"
    DRY_RUN_WORKED = "DryRunWorked"
    CREATE_IN_CLUSTER = "CreateInCluster"
    UPDATE_IN_CLUSTER = "UpdateInCluster"
    DELETE_IN_CLUSTER = "DeleteInCluster"
    REMOVE_MANAGED_LABEL = "RemoveManagedLabelFromInCluster"
    REPLACED_IN_CLUSTER = "ReplacedInCluster"
    DRIFT_REPAIRED = "DriftRepaired"
    DRIFT_LEFT = "DriftLeft"
    ENSURE_DELETION_FAILED = "EnsureDeletionFailed"
    WAIT_FOR_CASCADING_DELETE = "WaitForCascadingDelete"
    AUTO_MIGRATION_INFO_UPDATED = "AutoMigrationInfoUpdated"
    JOIN_CLUSTER_SUCCESS = "JoinClusterSuccess"
    JOIN_CLUSTER_ERROR = "JoinClusterError"
    JOIN_CLUSTER_TIMEOUT = "JoinClusterTimeoutExceeded"
    CLUSTER_UNJOINABLE = "ClusterUnjoinable"
    TOKEN_RENEWED = "TokenRenewed"
    ROLE_UPDATED = "MemberRoleUpdated"
    CLUSTER_FAILED = "ClusterFailed"
    FAILOVER_PACED = "FailoverPaced"
    CLUSTER_RECOVERED = "ClusterRecovered"
    TERMINATING_CLUSTER_BLOCKED = "HandleTerminatingClusterBlocked"
    TERMINATING_CLUSTER_FAILED = "HandleTerminatingClusterFailed"
    WEBHOOK_REGISTERED = "WebhookRegistered"
    WEBHOOK_CONFIGURATION_ERROR = "WebhookConfigurationError"
    PROFILE_INVALID = "SchedulingProfileInvalid"
    PROFILE_ARGUMENTS_UNUSED = "PluginConfigUnused"
    SHARD_MISSING = "ShardMissing"
    SHARD_BACK = "ShardBack"
