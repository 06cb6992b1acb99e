"""Every declaration of the wake table is needed: without it, a test of behaviour fails. `make wake-mutants` shows it."""
