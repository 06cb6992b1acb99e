"""Generated sequences of requests, answered by the embedded server and by stock kube-apiserver, and compared step by step.

`generator` makes a sequence from a seed (`subjects` has the kinds and what is tried on them), `side` runs it on one server,
`trace` makes two answers comparable, `duel` runs both sides in step and shrinks what differs. `rules` lists what may differ,
each by the name docs/server.md has for it.

    python -m tests.real.sequences --seed 7 --steps 40           # the same sequence again, every time
"""
