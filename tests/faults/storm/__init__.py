"""A storm: members, control plane and controllers fail at random under change, and in the end everything is as it should be.

    make faults [GROUND=b|c] [SEED=n] [MINUTES=10]

`plan` says what fails when, `stage` is what it happens to, `tenants` are the clients that go on changing things and
`intruder` the one who changes copies behind our back. `witness` notes what was wanted when; `survey` and `judge` tell in the
end whether everything is in its place and whether every step there was a right one.
"""
