"""How many replicas each cluster runs: one file a planner, the demand and weights they start from, and what a copy gets of it."""
