"""An object's copies in members: which clusters may hold one, what it contains, what an update retains, and who owns it."""
