"""An object's copies in members: where they may be, what each is to hold, what is kept of what is there, and whose they are."""
