"""Services: their fields, their updates, and the allocation of addresses and ports."""
