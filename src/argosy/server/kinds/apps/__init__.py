"""apps/v1: Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions, and what kinds that run pods share."""
