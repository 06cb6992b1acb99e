"""The loops' view of the world: informers of the control plane, the federated types, the live fleet, and views of objects.

Nothing here writes anything.
"""
