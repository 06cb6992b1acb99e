"""Overriders: what one rule of an override policy changes, as JSON patches. One file an overrider; `rule` runs them in order."""
