"""Vectors: recorded inputs and results, run through the product's own functions (`python -m tests.vectors DIR`)."""
