"""Benchmarks: each is one command, prints a table, and can write its rows as JSON."""
