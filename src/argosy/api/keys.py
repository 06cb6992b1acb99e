"""Keys: every label, annotation, finalizer, controller name and fixed text of the federation API, once.

These strings are stored in clusters and read by other programs: they are the API and never change. Keys that are
Argosy's own, not KubeAdmiral's, start with `argosy.io/`. Nothing here decides anything.
"""

from typing import Final

GROUP: Final = "core.kubeadmiral.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

PREFIX: Final = "kubeadmiral.io/"
#: Twins owned by controllers; they win over the user's form.
INTERNAL_PREFIX: Final = "internal.kubeadmiral.io/"
FEDERATE_PREFIX: Final = "federate.controller.kubeadmiral.io/"
ARGOSY_PREFIX: Final = "argosy.io/"

#: Namespace of the federation's own objects, in the control plane and in every member.
SYSTEM_NAMESPACE: Final = "kube-admiral-system"
#: Namespaces that are never written in members.
PROTECTED_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "default", SYSTEM_NAMESPACE})

# Labels on sources, copied to federated objects, never to members.
PROPAGATION_POLICY_LABEL: Final = PREFIX + "propagation-policy-name"
CLUSTER_PROPAGATION_POLICY_LABEL: Final = PREFIX + "cluster-propagation-policy-name"
OVERRIDE_POLICY_LABEL: Final = PREFIX + "override-policy-name"
CLUSTER_OVERRIDE_POLICY_LABEL: Final = PREFIX + "cluster-override-policy-name"
POLICY_LABELS: Final = frozenset(
    {
        PROPAGATION_POLICY_LABEL,
        CLUSTER_PROPAGATION_POLICY_LABEL,
        OVERRIDE_POLICY_LABEL,
        CLUSTER_OVERRIDE_POLICY_LABEL,
    }
)

# Labels elsewhere.
#: On an autoscaler: `distributed` (also if absent), one in each member, or `centralized`, one for all.
HPA_MODE_LABEL: Final = PREFIX + "hpa-mode"
MANAGED_LABEL: Final = PREFIX + "managed"
#: A fixed hash of the object's key on member objects, set only where shards or cells are on.
BUCKET_LABEL: Final = ARGOSY_PREFIX + "bucket"
#: On a shard's reservations: into how many parts the objects are divided.
RESERVED_LABEL: Final = ARGOSY_PREFIX + "reserved"

# Annotations users set on sources.
NO_FEDERATED_RESOURCE: Final = PREFIX + "no-federated-resource"
NO_SCHEDULING: Final = PREFIX + "no-scheduling"
SCHEDULING_MODE: Final = PREFIX + "scheduling-mode"
STICKY_CLUSTER: Final = PREFIX + "sticky-cluster"
CLUSTER_SELECTOR: Final = PREFIX + "clusterSelector"
AFFINITY: Final = PREFIX + "affinity"
TOLERATIONS: Final = PREFIX + "tolerations"
PLACEMENTS: Final = PREFIX + "placements"
MAX_CLUSTERS: Final = PREFIX + "maxClusters"
FOLLOWERS: Final = PREFIX + "followers"
DISABLE_FOLLOWING: Final = PREFIX + "disable-following"
FOLLOWS_OBJECT: Final = PREFIX + "follows-object"
RETAIN_REPLICAS: Final = PREFIX + "retain-replicas"
CONFLICT_RESOLUTION: Final = PREFIX + "conflict-resolution"
CLUSTERS_TO_ADOPT: Final = PREFIX + "clusters-to-adopt"
ORPHAN: Final = PREFIX + "orphan"
MIGRATION_CONFIGURATION: Final = PREFIX + "migration-configuration"
DRY_RUN: Final = PREFIX + "dry-run"
NO_AUTO_PROPAGATION: Final = PREFIX + "no-auto-propagation"
#: `true` on a source: no selector of a policy claims it. One that a selector did claim is let go.
NO_SELECTION: Final = ARGOSY_PREFIX + "no-selection"
#: `true` on a source, a FederatedCluster, or the system namespace (the whole fleet): nothing is written to members.
PAUSED: Final = ARGOSY_PREFIX + "paused"
#: On the system namespace: the time of the backup that the control plane was restored from. It started paused then.
RESTORED: Final = ARGOSY_PREFIX + "restored-from"

# Annotations users set on clusters, type configs and policies.
CASCADING_DELETE: Final = PREFIX + "cascading-delete"
CLUSTER_RESOURCE_PLUGINS: Final = PREFIX + "cluster-resource-plugins"
#: On a FederatedCluster: the uid of the system namespace in the member that joined, which identifies it (`fleet.identity`).
MEMBER_UID: Final = ARGOSY_PREFIX + "member-uid"
#: On a FederatedCluster that is leaving: the uid of `kube-system` in the member, which identifies it when our namespace is gone.
LEFT_CLUSTER: Final = ARGOSY_PREFIX + "left-cluster"
#: On a FederatedCluster that is leaving: when somebody last asked to give the member up. The controllers try once more then.
GIVE_UP_ASKED: Final = ARGOSY_PREFIX + "give-up-asked"
#: On a member's secret: `<cluster>=<address>`, where its credentials may be sent (`fleet.binding`).
BOUND_TO: Final = ARGOSY_PREFIX + "bound-to"
#: `full` on a FederatedCluster: its service account has all rights there, not only those the type configs need.
MEMBER_ACCESS: Final = ARGOSY_PREFIX + "member-access"
#: Annotation or label of a FederatedCluster: the power of its cores, as a multiple of a core of the fleet's reference.
COMPUTE_POWER: Final = ARGOSY_PREFIX + "compute-power"
#: Annotation of a FederatedCluster, JSON `{"<pool>": {"cores": …, "power": …}}`: the same for nodes that differ.
COMPUTE_POWER_POOLS: Final = ARGOSY_PREFIX + "compute-power-pools"
#: Annotation or label of a FederatedCluster: the price of a core-hour, a decimal in a currency all clusters share.
PRICE_PER_CORE_HOUR: Final = ARGOSY_PREFIX + "price-per-core-hour"
SCALE_TARGET_REF_PATH: Final = PREFIX + "scale-target-ref-path"
#: `true` on a propagation policy: scheduling annotations of objects do not replace this policy's fields.
REFUSE_OBJECT_OVERRIDES: Final = ARGOSY_PREFIX + "refuse-object-overrides"
#: Durations on a FederatedCluster that replace the operator's: unready for so long it has failed (`never`: it has not),
#: ready for so long it has recovered.
FAILOVER_AFTER: Final = ARGOSY_PREFIX + "failover-after"
FAILBACK_AFTER: Final = ARGOSY_PREFIX + "failback-after"
#: What is held up of the failover of a cluster, in words.
FAILOVER_STATE: Final = ARGOSY_PREFIX + "failover"
#: On a propagation policy: how many replicas may return to a recovered cluster at a time.
FAILBACK_REPLICAS: Final = ARGOSY_PREFIX + "failback-replicas"

# Taints controllers set on clusters.
#: The cluster has failed: it has not been ready for long.
UNREADY_TAINT: Final = ARGOSY_PREFIX + "unready"

#: Somebody ordered it to be emptied: `argosy drain`.
DRAINED_TAINT: Final = ARGOSY_PREFIX + "drained"

# Internal twins, set by controllers.
INTERNAL_CONFLICT_RESOLUTION: Final = INTERNAL_PREFIX + "conflict-resolution"
INTERNAL_CLUSTERS_TO_ADOPT: Final = INTERNAL_PREFIX + "clusters-to-adopt"
INTERNAL_ORPHAN: Final = INTERNAL_PREFIX + "orphan"
ENABLE_FOLLOWER_SCHEDULING: Final = INTERNAL_PREFIX + "enable-follower-scheduling"
POD_UNSCHEDULABLE_THRESHOLD: Final = INTERNAL_PREFIX + "pod-unschedulable-threshold"

# Annotations controllers write on federated objects.
PENDING_CONTROLLERS: Final = PREFIX + "pending-controllers"
OBSERVED_ANNOTATIONS: Final = FEDERATE_PREFIX + "observed-annotations"
OBSERVED_LABELS: Final = FEDERATE_PREFIX + "observed-labels"
TEMPLATE_MERGE_PATCH: Final = FEDERATE_PREFIX + "template-generator-merge-patch"
SCHEDULING_TRIGGERS: Final = PREFIX + "scheduling-triggers"
SCHEDULING_DEFERRED_REASONS: Final = PREFIX + "scheduling-deferred-reasons"
AUTO_MIGRATION_INFO: Final = PREFIX + "auto-migration-info"
SCHEDULING: Final = PREFIX + "scheduling"
APPLIED_MIGRATION_CONFIGURATION: Final = PREFIX + "applied-migration-configuration"
DERIVED_SERVICE: Final = PREFIX + "derived-service"
#: `true` on a federated object whose source vanished without having been deleted: its copies may be deleted.
CONFIRM_DELETION: Final = ARGOSY_PREFIX + "confirm-deletion"
#: JSON list, sorted, of `{"cluster": …, "cause": …, "since": …}`: clusters that left the placements and whose copy was not yet
#: seen gone. Earlier versions listed the names alone.
TO_BE_REMOVED: Final = ARGOSY_PREFIX + "to-be-removed"
#: JSON `{"total": …, "leaving": {cluster: {"share": …, "done": …}}}`: completions of a divided Job that succeeded in clusters it
#: left, and those of copies that are to be removed.
COMPLETED: Final = ARGOSY_PREFIX + "completed"
#: `Report` on a federated object: what others change in its copies is left there and shown, as its policy says.
DRIFT_CORRECTION: Final = ARGOSY_PREFIX + "drift-correction"
#: JSON `{"reason": …, "message": …}`: why the pass stopped and the last good placement is held.
HELD: Final = ARGOSY_PREFIX + "held"
#: JSON `{"cause": …, "clusters": […], "since": …}`: copies that would be taken away with too many others, and stay until that is
#: confirmed or undone.
HELD_REMOVAL: Final = ARGOSY_PREFIX + "held-removal"
#: `true` on the system namespace or one of our CRDs: it may be deleted.
UNINSTALL: Final = ARGOSY_PREFIX + "uninstall"
#: On a FederatedCluster that is leaving together with others: since when that waits to be confirmed.
LEAVE_HELD: Final = ARGOSY_PREFIX + "leave-held"
#: On the system namespace, JSON: what was confirmed, planned or released (`plan.brake.orders`), and until when nothing is held.
BRAKE_ORDERS: Final = ARGOSY_PREFIX + "brake-orders"
#: On a propagation policy: the id of the plan (`argosy plan -f`) that it was applied by. What just that removes is not held.
PLAN: Final = ARGOSY_PREFIX + "plan"
#: JSON: clusters that keep their copy as it is, since the overrides meant for them cannot be applied (`plan.copies.held_copies`).
HELD_COPIES: Final = ARGOSY_PREFIX + "held-copies"
#: JSON: which rule of which override policy made which patch (`plan.overriders.record`).
OVERRIDES: Final = ARGOSY_PREFIX + "overrides"
#: `<kind>/<name>`: the policy whose selectors claimed the object. Its label is on the federated object alone.
SELECTED_BY: Final = ARGOSY_PREFIX + "selected-by"
#: JSON list, sorted: what the object needs and waits for, and does not exist, each as `Kind namespace/name`.
WAITS_FOR: Final = ARGOSY_PREFIX + "waits-for"
#: On the federated object of a PodDisruptionBudget that is divided with its workloads: what that means, in words.
BUDGET: Final = ARGOSY_PREFIX + "budget"
#: JSON `{"left": [cluster], "target": {cluster: replicas}}`: clusters left because they failed, and where it is going while
#: it comes back to one of them.
FAILBACK: Final = ARGOSY_PREFIX + "failback"
#: JSON: the record of the last scheduling decision, from which it is explained.
DECISION: Final = ARGOSY_PREFIX + "decision"

#: Label of type configs that were made from a definition; and an annotation of them, the digest of what was made.
DERIVED: Final = ARGOSY_PREFIX + "derived"
DERIVED_SPEC: Final = ARGOSY_PREFIX + "derived-spec"
#: And the digest of what was not made of it, since objects would be divided otherwise.
DERIVED_LEFT: Final = ARGOSY_PREFIX + "derived-left"
#: `false` on a CustomResourceDefinition: no type config is made from it.
MAKE_TYPE_CONFIG: Final = ARGOSY_PREFIX + "make-type-config"

# Annotations installation writes.
#: On our CRDs: a number that grows with every change of a schema. On stock type configs: the same for those that changed.
REVISION: Final = ARGOSY_PREFIX + "revision"
#: On the system namespace, JSON list: stock type configs that were installed once, so that a deleted one stays deleted.
INSTALLED_TYPE_CONFIGS: Final = ARGOSY_PREFIX + "installed-type-configs"

# Annotations on member objects.
SOURCE_GENERATION: Final = PREFIX + "source-generation"
PROPAGATED_ANNOTATION_KEYS: Final = PREFIX + "propagated-annotation-keys"
PROPAGATED_LABEL_KEYS: Final = PREFIX + "propagated-label-keys"
ADOPTED: Final = PREFIX + "adopted"
#: `true` on a copy that was left running when its source was deleted by mistake.
RESCUED: Final = ARGOSY_PREFIX + "rescued"
FEDERATED_CLUSTER_UID: Final = PREFIX + "federated-cluster-uid"
LATEST_REPLICASET_PREFIX: Final = "latestreplicaset.kubeadmiral.io/"

#: kubectl's, on sources: the whole object as it was applied last, a Secret's data included.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# Annotations on CollectedStatus and on sources.
LATEST_REPLICASET_DIGESTS: Final = PREFIX + "latest-replicaset-digests"

#: Source annotations that go to the federated object and nowhere else.
FEDERATED_ANNOTATIONS: Final = frozenset(
    {
        RETAIN_REPLICAS,
        SCHEDULING_MODE,
        STICKY_CLUSTER,
        NO_AUTO_PROPAGATION,
        ORPHAN,
        CONFLICT_RESOLUTION,
        CLUSTERS_TO_ADOPT,
        TOLERATIONS,
        PLACEMENTS,
        CLUSTER_SELECTOR,
        AFFINITY,
        MAX_CLUSTERS,
        NO_SCHEDULING,
        FOLLOWS_OBJECT,
        FOLLOWERS,
        DISABLE_FOLLOWING,
        MIGRATION_CONFIGURATION,
        DRY_RUN,
        PAUSED,
    }
)
#: Source annotations that go nowhere: the federation itself wrote them there.
IGNORED_ANNOTATIONS: Final = frozenset({LATEST_REPLICASET_DIGESTS, APPLIED_MIGRATION_CONFIGURATION, SCHEDULING})
#: Labels and annotations that the federation writes in members and later goes by. Nobody else says them: no source, no
#: template, no override.
MARKS: Final = frozenset(
    {
        MANAGED_LABEL,
        BUCKET_LABEL,
        SOURCE_GENERATION,
        PROPAGATED_ANNOTATION_KEYS,
        PROPAGATED_LABEL_KEYS,
        ADOPTED,
        RESCUED,
        FEDERATED_CLUSTER_UID,
    }
)
#: Annotations copied back from the federated object to the source.
FEEDBACK_ANNOTATIONS: Final = (SCHEDULING, APPLIED_MIGRATION_CONFIGURATION)
#: Object annotations whose change asks for scheduling again.
SCHEDULING_ANNOTATIONS: Final = frozenset(
    {
        SCHEDULING_MODE,
        STICKY_CLUSTER,
        TOLERATIONS,
        PLACEMENTS,
        CLUSTER_SELECTOR,
        AFFINITY,
        MAX_CLUSTERS,
        FOLLOWS_OBJECT,
        APPLIED_MIGRATION_CONFIGURATION,
        DRY_RUN,
    }
)

# Finalizers.
FEDERATE_FINALIZER: Final = PREFIX + "federate-controller"
SYNC_FINALIZER: Final = PREFIX + "sync-controller"
CASCADING_DELETE_FINALIZER: Final = PREFIX + "cascading-delete"
CLUSTER_FINALIZER: Final = PREFIX + "federated-cluster-controller"
RETAIN_TERMINATING_FINALIZER: Final = PREFIX + "retain-terminating-object"

# Controllers, as named in type configs, placements, overrides and the pending list.
GLOBAL_SCHEDULER: Final = PREFIX + "global-scheduler"
OVERRIDE_CONTROLLER: Final = PREFIX + "overridepolicy-controller"
NSAUTOPROP_CONTROLLER: Final = PREFIX + "nsautoprop-controller"
FEDERATED_HPA_CONTROLLER: Final = PREFIX + "federatedhpa-controller"
FOLLOWER_CONTROLLER: Final = PREFIX + "follower-controller"

#: Those whose steps Argosy does itself; entries of others are carried through.
OWN_STEPS: Final = (
    NSAUTOPROP_CONTROLLER,
    FEDERATED_HPA_CONTROLLER,
    GLOBAL_SCHEDULER,
    OVERRIDE_CONTROLLER,
    FOLLOWER_CONTROLLER,
)

# Values.
ADOPT: Final = "adopt"
ORPHAN_ALL: Final = "all"
ORPHAN_ADOPTED: Final = "adopted"
DUPLICATE: Final = "Duplicate"
DIVIDE: Final = "Divide"
SPREAD: Final = "Spread"
BINPACK: Final = "Binpack"
AGGREGATED: Final = "Aggregated"
WEBSTER: Final = "Webster"
CENTRALIZED: Final = "centralized"
REPAIR: Final = "Repair"
REPORT: Final = "Report"
NAMESPACED: Final = "Namespaced"
CLUSTER: Final = "Cluster"
FULL: Final = "full"
NEVER: Final = "never"

# Keys of a cluster's secret.
SECRET_CA: Final = "certificate-authority-data"
SECRET_CLIENT_CERTIFICATE: Final = "client-certificate-data"
SECRET_CLIENT_KEY: Final = "client-key-data"
SECRET_BOOTSTRAP_TOKEN: Final = "bootstrap-token-data"
SECRET_SERVICE_ACCOUNT_TOKEN: Final = "service-account-token-data"

# Objects made in a member that joins with useServiceAccount.
MEMBER_SERVICE_ACCOUNT: Final = "kubeadmiral-member"
MEMBER_CLUSTER_ROLE: Final = "kubeadmiral-controller-manager:kubeadmiral-member"
