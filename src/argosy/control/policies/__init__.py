"""How much each policy is used: counted, and kept in its status."""
