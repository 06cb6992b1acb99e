"""How many replicas each cluster runs: one file per planner, their demand and weights, and each copy's share."""
