"""What the loops report about themselves: metrics, events on objects, and how long writes take to arrive."""
