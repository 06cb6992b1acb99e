"""Subresources that do something instead of being stored: bindings, evictions, scale."""
