"""The brake: what a change takes away is counted before it is taken.

Pure. `departure` says what a pass would take away and why, `limits` whether that is too much at once, `kept` what is written
while it waits. `control/brake.py` has the counts and the clock.
"""
