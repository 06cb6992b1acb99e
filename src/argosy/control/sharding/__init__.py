"""Several controller processes over one control plane: who owns what, who may start, and what shards tell each other."""
