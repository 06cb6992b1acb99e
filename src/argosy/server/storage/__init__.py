"""Storage of objects as versioned keys: the contract (`base`), SQLite and memory, and the protection of a SQLite folder.

Reserve and room for a full disk, epochs and examination against lost writes, backup and restore.
"""
