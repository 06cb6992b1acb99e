"""What comes back from members: one merged status, collected fields, and the state of the object's propagation."""
