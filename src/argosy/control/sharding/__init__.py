"""Several controller processes for one control plane: which shard owns what, which may start, and what shards share."""
