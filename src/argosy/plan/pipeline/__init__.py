"""The pass over one source object, which makes its federated object: one file a step, and `run`, which takes the steps.

A step is a function from `inputs` and `state` to the next state. `federate` comes first; then `namespaces`, `autoscale`,
`schedule` and `override`, as the type config lists them. `held` says why a pass stopped, `pending` who has still to act.
"""
