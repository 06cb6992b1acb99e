"""The brake at work: counts what waits to be taken away, and lets it go or holds it. `plan.brake` decides, and
`docs/brake.md` says what users see of it.

Federate asks before it stores what a pass decided, and before it deletes a federated object. Dispatch removes only copies that
are noted as to be removed, and notes are written only for what was let go: there is no other way to remove.
"""
