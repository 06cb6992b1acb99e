"""What kinds of several groups share: the frame of a built-in kind, small rules, defaults, zero values."""
