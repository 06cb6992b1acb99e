"""What is special about a kind of object: its pod template, how it is divided, how its status is merged, when it is finished,
what copies keep, what it needs.

`stock` has one file a kind of Kubernetes' own, and `registry` finds it. The defaults for other kinds are in `kind` and `generic`.
Status merges are made of the parts in `merging` and `folding`.
"""
