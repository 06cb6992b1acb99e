"""What is special about a kind of object, one file a kind: its pod template, how it is divided, its status, what copies keep.

`registry` finds the file. What holds for a kind without one is in `kind`, and how its status is merged in `generic`.
"""
