"""Work that leaves a cluster and comes back: failed clusters (failover, failback), full ones (auto migration), a user's wish."""
