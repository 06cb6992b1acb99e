"""Shared by kinds of several groups: the base of a built-in kind, small rules, defaults, zero values."""
