"""Where objects are kept, as versioned keys: the contract (`base`), SQLite and memory, and what keeps a SQLite folder safe.

Reserve and room for a full disk, epochs and examination against lost writes, backup and restore.
"""
