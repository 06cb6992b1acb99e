"""Fuzz: requests nobody should send, and answers nobody should give, to a control plane in a process of its own.

    python -m tests.fuzz --minutes 10 --seed 1     # or: make fuzz MINUTES=10 SEED=1
    python -m tests.fuzz --seed 1 --only 4711      # one request of that run again, with its answer

Everything is made from the seed: request 4711 of seed 1 is the same bytes always. What is judged: no 500, no exception in the
log, /livez answered soon, memory bounded and given back.
"""
