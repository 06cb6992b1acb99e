"""The processes of `argosy up` on this machine: their data folder, the control plane, the members, and the event loop."""
