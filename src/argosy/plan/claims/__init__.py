"""Claims: which propagation policy an object gets, by its label or by a policy's selectors, and how that is recorded."""
