"""The watch cache: all current objects in memory in front of a storage, and the watches on them."""
