"""The pass over one source object: federate, schedule, override, in the order of the type config, into one write.

`run` goes through the steps; one file a step; `held` says why a pass stopped, `pending` which controllers are still to come.
"""
