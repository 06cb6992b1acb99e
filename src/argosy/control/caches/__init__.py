"""What the loops know: informers of the control plane, the federated types, the live fleet, and the views they keep of objects.

Nothing here writes anything.
"""
