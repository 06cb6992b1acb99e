"""Subresources that act instead of being stored: bindings, evictions, reviews, tokens, scale. And views of objects."""
