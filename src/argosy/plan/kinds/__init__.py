"""What is special about a kind of object, one file a kind: its pod template, how it is divided, its status, what copies keep.

`registry` finds the file. The defaults for other kinds are in `kind`, and their status merge is in `generic`.
"""
