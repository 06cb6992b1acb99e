"""autoscaling: HorizontalPodAutoscalers in v2, the stored version, and in v1."""
