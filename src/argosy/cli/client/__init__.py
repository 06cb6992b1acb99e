"""What commands do with a control plane: connect, read kinds and manifests, make a cluster a member, ask what if.

No command is here, and nothing prints.
"""
