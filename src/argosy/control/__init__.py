"""The loops: they watch, ask `plan/` what to do, and write the difference. Every decision is made elsewhere."""
