"""Kinds that are described by data: a rule is a file in `shipped`, or a part of a type config.

Beside each rule are its vectors, what goes in and what comes out. A further kind needs a file and no code.
"""
