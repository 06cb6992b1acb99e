"""Tests that measure, and so have the machine for themselves: `make test-alone`."""
