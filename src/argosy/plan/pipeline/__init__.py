"""The pass over one source object, which makes its federated object: one file per step, and `run`, which runs the steps.

A step is a function from `inputs` and `state` to the next state. `federate` comes first; then `namespaces`, `autoscale`,
`schedule` and `override`, as the type config lists them. `held` says why a pass stopped, `pending` which controllers must act.
"""
