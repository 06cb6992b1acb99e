"""For every row of the wake table, as who/source/why, a test of behaviour that fails without it."""

__all__ = ["EXPECTED"]

_CONTROL = "tests/control/test_"
_SCENARIOS = "tests/scenarios/test_simulated.py::test_"

_TESTS = [
    (
        "sources/federated types/sources of federated types are watched",
        f"{_CONTROL}wakeups.py::test_a_type_of_ones_own_comes_and_goes",
    ),
    (
        "fleet/federatedclusters.core.kubeadmiral.io/decisions are made on the clusters as they are",
        f"{_CONTROL}propagation.py::test_a_deployment_is_divided_and_reported_back[local]",
    ),
    (
        "collect/connections to members/copies in a connected member are watched",
        f"{_CONTROL}wakes.py::test_drift_is_repaired_in_a_member_that_joined_later",
    ),
    (
        "collect/federated types/what is read of copies follows their type",
        f"{_CONTROL}wakes_types.py::test_what_is_read_of_copies_follows_their_type",
    ),
    (
        "katalyst/connections to members/a connected member is watched if it has Katalyst",
        f"{_CONTROL}wakes.py::test_what_katalyst_reclaims_is_followed_in_a_cluster_that_left_and_came_back",
    ),
    (
        "katalyst/federatedclusters.core.kubeadmiral.io/the annotation that asks for it came or went",
        f"{_CONTROL}placement_rules.py::test_what_katalyst_reclaims_is_capacity_where_a_cluster_says_so",
    ),
    (
        "capacity/connections to members/nodes and pods of a connected member are watched",
        f"{_CONTROL}rules.py::test_more_room_places_what_found_none",
    ),
    (
        "capacity/resources of Katalyst in a member/what Katalyst reclaims counts",
        f"{_CONTROL}placement_rules.py::test_what_katalyst_reclaims_is_capacity_where_a_cluster_says_so",
    ),
    (
        "reservations/federated objects/what was placed is reserved until it runs",
        f"{_CONTROL}reservations.py::test_after_a_restart_the_same_is_reserved",
    ),
    (
        "reservations/copies in members/what runs is reserved no more",
        f"{_CONTROL}reservations.py::test_what_runs_is_not_reserved_any_more_and_what_is_deleted_neither",
    ),
    (
        "reservations/federated types/how much a placement takes follows from its type",
        f"{_CONTROL}reservations.py::test_a_type_that_comes_late_has_its_reservations",
    ),
    ("brake/federated objects/where copies are", f"{_CONTROL}brake.py::test_a_quarter_of_a_cluster_is_not_too_much"),
    (
        "brake/source objects/how many sources are being deleted",
        f"{_CONTROL}brake_deletions.py::test_a_prune_of_everything_is_held_over_a_restart_until_it_is_confirmed",
    ),
    (
        "brake/namespaces/removals are confirmed, or the brake is off",
        f"{_CONTROL}brake.py::test_a_narrowed_policy_is_held_over_a_restart_until_it_is_confirmed",
    ),
    (
        "brake/what would be taken away/something would be taken away, or was confirmed",
        f"{_CONTROL}brake.py::test_a_narrowed_policy_is_held_over_a_restart_until_it_is_confirmed",
    ),
    (
        "federate/the brake's judgements/what it would take away may go, or is held",
        f"{_CONTROL}brake.py::test_one_object_that_moves_is_done_within_ten_seconds",
    ),
    (
        "dispatch/the brake's judgements/whether it is deleted with its copies was decided",
        f"{_CONTROL}brake_deletions.py::test_a_deleted_namespace_with_most_sources_is_held_and_confirmed",
    ),
    (
        "followers/deletions that were let go/whether a leader's copies go with it",
        f"{_CONTROL}brake_deletions.py::test_a_single_deletion_goes_on_after_a_moment_and_takes_its_followers_along",
    ),
    (
        "done work/copies in members/what a copy had done counts when it is gone",
        f"{_SCENARIOS}what_a_copy_does_until_it_is_removed_counts_and_is_not_done_again",
    ),
    (
        "release/federated types/its type config is gone",
        f"{_CONTROL}release.py::test_sources_are_let_go_and_copies_stay",
    ),
    (
        "release/federated objects/an object of a kind that is not federated any more was found, or is deleted",
        f"{_CONTROL}release.py::test_what_nobody_federates_is_let_go_after_a_restart",
    ),
    (
        "dispatch/federated types/its type is not federated any more",
        f"{_CONTROL}release.py::test_the_status_of_what_is_federated_no_more_says_so",
    ),
    (
        "type configs/customresourcedefinitions.apiextensions.k8s.io/it came or changed",
        f"{_CONTROL}typeconfigs.py::test_an_object_that_names_a_policy_makes_its_kind_federated",
    ),
    (
        "type configs/propagationpolicies.core.kubeadmiral.io/a policy selects other kinds",
        f"{_CONTROL}typeconfigs.py::"
        "test_a_policy_that_selects_the_kind_makes_it_and_one_that_selects_all_when_there_is_an_object",
    ),
    (
        "type configs/clusterpropagationpolicies.core.kubeadmiral.io/a policy selects other kinds",
        f"{_CONTROL}typeconfigs.py::test_a_cluster_policy_that_selects_the_kind_makes_it",
    ),
    (
        "type configs/what policies select/objects are selected otherwise, as by labels of their namespace",
        f"{_CONTROL}typeconfigs.py::test_an_object_is_claimed_once_its_namespace_has_the_labels",
    ),
    (
        "type configs/federated types/its type config came, changed or went",
        f"{_CONTROL}typeconfigs.py::test_one_that_somebody_deletes_is_made_again_while_it_is_claimed",
    ),
    (
        "type configs/objects of kinds without a type config/an object of it is claimed",
        f"{_CONTROL}typeconfigs.py::test_an_object_that_names_a_policy_makes_its_kind_federated",
    ),
    (
        "type configs/federated objects/the last of its objects may be gone",
        f"{_CONTROL}typeconfigs.py::test_it_goes_when_nobody_claims_such_objects",
    ),
    (
        "followers/federated objects/what leaders need, and where they are",
        f"{_CONTROL}followers.py::test_what_a_deployment_needs_goes_where_it_goes",
    ),
    (
        "followers/source objects/what exists, and which workload it is about",
        f"{_CONTROL}followers.py::test_a_budget_goes_with_the_workloads_whose_pods_it_protects",
    ),
    (
        "followers/federated types/what an object needs follows from its type",
        f"{_CONTROL}followers.py::test_a_type_of_ones_own_says_what_its_objects_need",
    ),
    (
        "claims/propagationpolicies.core.kubeadmiral.io/which objects policies select",
        f"{_CONTROL}selecting.py::test_what_was_local_is_propagated_by_a_policy_that_selects_it",
    ),
    (
        "claims/clusterpropagationpolicies.core.kubeadmiral.io/which objects policies select",
        f"{_CONTROL}selecting.py::test_a_new_object_is_propagated_by_a_policy_that_selects_it",
    ),
    (
        "claims/namespaces/labels that policies select namespaces by",
        f"{_CONTROL}selecting.py::test_a_namespaces_labels_are_heard_of_where_a_policy_looks_at_them",
    ),
    (
        "federate/what policies select/a policy selects it, or did",
        f"{_CONTROL}selecting.py::test_what_was_local_is_propagated_by_a_policy_that_selects_it",
    ),
    (
        "arriving kinds/kinds new to the fleet/its objects wait a moment for other members to serve it",
        f"{_CONTROL}arriving_kinds.py::test_a_kind_that_came_to_one_member_is_awaited_in_the_others",
    ),
    (
        "clusters/copies in members/it accepted a definition",
        f"{_CONTROL}arriving_kinds.py::test_members_are_asked_soon_what_they_serve_when_they_got_a_definition",
    ),
    (
        "clusters/kinds new to the fleet/another cluster serves a kind it may soon serve",
        f"{_CONTROL}arriving_kinds.py::test_a_kind_that_came_to_one_member_is_awaited_in_the_others",
    ),
    (
        "placed workloads/federated objects/where a workload is placed",
        f"{_CONTROL}placement_rules.py::test_a_workload_waits_for_the_one_it_wants_to_be_beside_and_follows_it",
    ),
    (
        "placed workloads/source objects/its labels",
        f"{_CONTROL}placement_rules.py::test_the_index_follows_placements_and_labels_and_tells_of_moves",
    ),
    (
        "webhook plugins/schedulerpluginwebhookconfigurations.core.kubeadmiral.io/which webhooks there are",
        f"{_CONTROL}webhooks.py::test_a_webhook_in_another_process_filters_scores_and_selects",
    ),
    (
        "profiles/schedulingprofiles.core.kubeadmiral.io/which plugins run",
        f"{_CONTROL}webhooks.py::test_a_profile_that_comes_changes_and_goes_concerns_the_objects_that_name_it",
    ),
    (
        "profiles/webhook plugins/which plugins there are, behind HTTP",
        f"{_CONTROL}webhooks.py::test_changes_of_a_webhook_are_taken_up",
    ),
    (
        "profiles/packages of plugins/which plugins there are, of Python packages",
        "tests/control/plugins/test_loading.py::test_a_profile_is_judged_once_its_package_is_loaded",
    ),
    (
        "clusters/federatedclusters.core.kubeadmiral.io/it changed in more than its health",
        f"{_CONTROL}propagation.py::test_a_deployment_is_divided_and_reported_back[local]",
    ),
    (
        "clusters/secrets/its credentials changed",
        f"{_CONTROL}wakes.py::test_what_changed_while_nobody_was_connected_is_carried_with_the_connection",
    ),
    (
        "clusters/credentials a member refused/the member refused its credentials",
        f"{_CONTROL}wakes_clusters.py::test_a_token_is_replaced_as_soon_as_it_is_refused",
    ),
    (
        "clusters/another cluster in a member's place/another cluster answered in its place",
        f"{_CONTROL}wakes_clusters.py::test_another_cluster_is_told_as_soon_as_it_answers",
    ),
    (
        "clusters/members that stop or begin to answer/the member stopped or began to answer",
        f"{_CONTROL}silence.py::test_requests_that_fail_are_reason_enough_to_look",
    ),
    (
        "clusters/federated types/the rights of service accounts follow the types",
        f"{_CONTROL}wakes_types.py::test_rights_in_members_follow_the_types_at_once",
    ),
    (
        "migrate/federated objects/it is to migrate, or is placed elsewhere",
        f"{_CONTROL}wakes_migration.py::test_replicas_that_wait_for_long_leave_once_they_may",
    ),
    (
        "migrate/copies in members/a member changed a copy",
        f"{_CONTROL}wakes_migration.py::test_replicas_leave_when_the_copy_tells_of_them_after_its_pods",
    ),
    (
        "migrate/pods in members/a pod of it got a node, or failed to",
        f"{_CONTROL}wakes_migration.py::test_replicas_leave_when_their_pods_fit_no_node_after_the_copy_told_of_them",
    ),
    (
        "migrate/room in a cluster/a cluster it was too large for has room",
        f"{_CONTROL}wakes_migration.py::test_a_cluster_that_has_room_again_is_not_taken_for_full",
    ),
    (
        "federate/source objects/a user changed it",
        f"{_CONTROL}propagation.py::test_an_image_change_reaches_every_member[local]",
    ),
    (
        "federate/federated objects/others wrote its federated object, or a copy to be removed is gone",
        f"{_CONTROL}propagation.py::test_deletion_waits_until_members_are_clean",
    ),
    (
        "federate/propagationpolicies.core.kubeadmiral.io/a policy it names changed",
        f"{_CONTROL}wakes.py::test_what_waits_for_its_policy_goes_on_when_that_is_there[PropagationPolicy-patient]",
    ),
    (
        "federate/clusterpropagationpolicies.core.kubeadmiral.io/a policy it names changed",
        f"{_CONTROL}wakes.py::test_what_waits_for_its_policy_goes_on_when_that_is_there[ClusterPropagationPolicy-patient]",
    ),
    (
        "federate/overridepolicies.core.kubeadmiral.io/a policy it names changed",
        f"{_CONTROL}wakes.py::test_a_changed_override_reaches_members[OverridePolicy]",
    ),
    (
        "federate/clusteroverridepolicies.core.kubeadmiral.io/a policy it names changed",
        f"{_CONTROL}wakes.py::test_a_changed_override_reaches_members[ClusterOverridePolicy]",
    ),
    (
        "federate/federated types/its type is federated otherwise",
        f"{_CONTROL}wakes_types.py::test_what_a_type_says_of_replicas_counts_for_objects_that_are_there",
    ),
    (
        "federate/webhook plugins/the plugin it asked is another one",
        f"{_CONTROL}wakes.py::test_who_waits_for_a_webhook_that_hangs_asks_the_one_in_its_place",
    ),
    (
        "federate/room in a cluster/it found no cluster, and one has room",
        f"{_CONTROL}wakes.py::test_what_found_no_room_is_placed_when_there_is[a node]",
    ),
    (
        "federate/reservations that ended/it found no cluster, and room is given back",
        f"{_CONTROL}wakes.py::test_what_found_no_room_is_placed_when_there_is[a reservation]",
    ),
    (
        "federate/placed workloads/it may only run beside or apart from others, and these moved",
        f"{_CONTROL}placement_rules.py::test_a_workload_waits_for_the_one_it_wants_to_be_beside_and_follows_it",
    ),
    (
        "federate/what members can run of a workload/members were seen to be able to run more or less of it",
        f"{_SCENARIOS}replicas_leave_a_full_cluster_and_are_not_brought_back_needlessly",
    ),
    (
        "federate/leaders of an object/an object that needs it came, went or changed",
        f"{_CONTROL}followers.py::test_a_follower_goes_along_when_its_leader_moves",
    ),
    (
        "federate/objects that are missing/something it needs does not exist",
        f"{_CONTROL}followers.py::test_a_follower_that_comes_late_is_told_missing_and_then_goes_along",
    ),
    (
        "federate/objects that were missing/what it waited for exists",
        f"{_CONTROL}followers.py::test_a_follower_that_comes_late_is_told_missing_and_then_goes_along",
    ),
    (
        "federate/copies in members/replicas come back to a recovered cluster",
        f"{_CONTROL}wakes_failback.py::test_the_next_replica_returns_when_the_one_before_is_available",
    ),
    (
        "federate/profiles/its policy's profile changed",
        f"{_CONTROL}webhooks.py::test_a_profile_that_comes_changes_and_goes_concerns_the_objects_that_name_it",
    ),
    (
        "federate/facts of a cluster/a cluster came, went or changed",
        f"{_CONTROL}rules.py::test_a_noexecute_taint_moves_work_and_leaves_no_copy",
    ),
    (
        "dispatch/federated objects/it changed",
        f"{_CONTROL}propagation.py::test_an_image_change_reaches_every_member[local]",
    ),
    (
        "dispatch/source objects/its source came, was resumed, or says more of its deletion",
        f"{_CONTROL}removal.py::test_a_paused_object_that_is_deleted_goes_once_it_is_resumed",
    ),
    (
        "dispatch/federated types/its type came or changed: it may have waited for that",
        f"{_CONTROL}wakes_types.py::test_a_deletion_that_was_confirmed_while_there_was_no_type_goes_on_with_it",
    ),
    ("dispatch/namespaces/the fleet was paused or resumed", f"{_CONTROL}rules.py::test_pause_and_resume[fleet]"),
    (
        "dispatch/copies in members/a copy that was to go is gone",
        f"{_CONTROL}wakes.py::test_a_deletion_ends_when_the_last_copy_is_gone[patient]",
    ),
    (
        "dispatch/copies in members/a copy that was to stay is gone",
        f"{_SCENARIOS}a_copy_deleted_behind_our_back_is_made_again",
    ),
    (
        "dispatch/copies in members/a copy is not as it was written",
        f"{_CONTROL}wakes.py::test_drift_is_repaired_in_a_member_that_joined_later",
    ),
    (
        "dispatch/federatedclusters.core.kubeadmiral.io/a cluster was paused or resumed",
        f"{_CONTROL}rules.py::test_pause_and_resume[cluster]",
    ),
    (
        "dispatch/connections to members/a member was connected",
        f"{_CONTROL}wakes.py::test_what_changed_while_nobody_was_connected_is_carried_with_the_connection",
    ),
    (
        "dispatch/members that answer again/a member answers again",
        f"{_CONTROL}wakes.py::test_what_a_member_refused_is_carried_when_it_answers_again[unretried]",
    ),
    (
        "dispatch/federatedclusters.core.kubeadmiral.io/a member that was not ready answers again",
        f"{_CONTROL}outage_times.py::test_a_member_that_is_back_has_what_it_missed_before_it_counts_as_ready[cut]",
    ),
    (
        "evictions/federated objects/how much is in each zone, and left it",
        f"{_CONTROL}failover_pacing.py::test_a_share_of_the_zone_leaves_in_a_minute_and_the_rest_later",
    ),
    (
        "dispatch/reach of a cluster/a cluster came, went or became ready",
        f"{_CONTROL}wakes.py::test_what_an_unready_cluster_missed_is_carried_when_it_is_ready[watchful]",
    ),
    ("aggregate/copies in members/a member changed a copy", f"{_CONTROL}wakes.py::test_what_a_member_reports_is_told"),
    (
        "aggregate/members' copies that were read/copies could not be read before",
        f"{_CONTROL}wakeups.py::test_copies_that_can_be_read_at_last_are_reported_also_where_there_are_none",
    ),
    (
        "refusals/copies in members/a member changed a copy, which may lack pods",
        f"{_CONTROL}causes.py::test_the_member_is_asked_why_it_creates_no_pods_of_a_statefulset",
    ),
    (
        "aggregate/pods in members that do not start/pods of it do not start, or start again",
        f"{_CONTROL}causes.py::test_pods_that_do_not_start_cost_two_writes_in_all_members_together",
    ),
    (
        "aggregate/pods that members do not create/a member creates no pods for it, or does again",
        f"{_CONTROL}causes.py::test_the_member_is_asked_why_it_creates_no_pods_of_a_statefulset",
    ),
    (
        "aggregate/source objects/a user changed it",
        f"{_CONTROL}wakes.py::test_a_status_that_somebody_wrote_over_is_put_right",
    ),
    (
        "aggregate/federated objects/it was dispatched",
        f"{_CONTROL}wakes.py::test_where_an_object_was_placed_is_told_although_no_copy_changed",
    ),
    (
        "aggregate/collected statuses/others wrote its collected status",
        f"{_CONTROL}wakes.py::test_a_collected_status_that_others_wrote_over_is_put_right[cluster-scoped]",
    ),
    (
        "aggregate/reach of a cluster/a cluster can be read again, or no more",
        f"{_CONTROL}wakes.py::test_of_a_paused_object_it_is_told_which_members_cannot_be_read[watchful]",
    ),
    (
        "aggregate/federatedclusters.core.kubeadmiral.io/a cluster is heard of again, or no more",
        f"{_CONTROL}silence.py::test_a_member_that_is_gone_is_told_within_seconds_and_moves_nothing[cut-10.0]",
    ),
    (
        "policy uses/federated objects/which policies objects name",
        f"{_CONTROL}policy_counts.py::test_policies_say_how_many_objects_use_them",
    ),
    (
        "policy counts/uses of policies/more or fewer objects name it",
        f"{_CONTROL}policy_counts.py::test_policies_say_how_many_objects_use_them",
    ),
    (
        "policy counts/federated types/objects that name it are of a kind that is federated again, or no more",
        f"{_CONTROL}policy_counts.py::test_a_kind_that_is_federated_no_more_is_not_counted_by_kind",
    ),
    (
        "policy counts/propagationpolicies.core.kubeadmiral.io/it came, or somebody wrote its count",
        f"{_CONTROL}policy_counts.py::test_a_count_that_somebody_wrote_is_put_right[propagationpolicies]",
    ),
    (
        "policy counts/clusterpropagationpolicies.core.kubeadmiral.io/it came, or somebody wrote its count",
        f"{_CONTROL}policy_counts.py::test_a_count_that_somebody_wrote_is_put_right[clusterpropagationpolicies]",
    ),
    (
        "policy counts/overridepolicies.core.kubeadmiral.io/it came, or somebody wrote its count",
        f"{_CONTROL}policy_counts.py::test_a_count_that_somebody_wrote_is_put_right[overridepolicies]",
    ),
    (
        "policy counts/clusteroverridepolicies.core.kubeadmiral.io/it came, or somebody wrote its count",
        f"{_CONTROL}policy_counts.py::test_a_count_that_somebody_wrote_is_put_right[clusteroverridepolicies]",
    ),
    (
        "failover/federatedclusters.core.kubeadmiral.io/it, or another one, became ready or unready, or its taints changed",
        f"{_CONTROL}failover.py::test_a_cluster_that_fails_is_given_up_with_an_event",
    ),
    (
        "permissions/federated types/a type came or changed: it may need other rights",
        f"{_CONTROL}wakes_types.py::test_a_type_that_the_controllers_have_no_rights_to_is_told",
    ),
    (
        "federate/reservations of other shards that ended/it found no cluster, and another shard gave room back",
        f"{_CONTROL}wakes.py::test_what_found_no_room_is_placed_when_another_shard_gives_some_back",
    ),
    (
        "clusters/federatedclusters.core.kubeadmiral.io/the owner heard of the member again",
        f"{_CONTROL}shards.py::test_all_shards_watch_again_when_the_owner_hears_of_a_member",
    ),
    (
        "policy uses/uses of policies in other shards/which policies objects of other shards name",
        f"{_CONTROL}policy_counts.py::test_shards_count_together_what_names_a_policy_without_a_namespace",
    ),
]

EXPECTED: dict[str, str] = dict(_TESTS)
