"""What the loops tell about themselves: metrics, events on objects, and how long a write took to arrive."""
