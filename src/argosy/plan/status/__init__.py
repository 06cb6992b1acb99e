"""What comes back from members: one status of many, collected fields, and how far the object's propagation is."""
