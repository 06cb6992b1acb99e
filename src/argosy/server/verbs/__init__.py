"""The verbs of the API, one file each, and what they share: reading an object (`base`), storing one (`commit`)."""
