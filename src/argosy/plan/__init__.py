"""The decisions, as pure functions: values in, values out. No clock, no network, no event loop.

`pipeline` is the pass over one object; the other folders are what its steps decide with.
"""
