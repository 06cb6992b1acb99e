"""Services: their fields, their updates, and the addresses and ports handed out to them."""
