"""The commands, one file each. They parse options, call the rooms below, and leave the form of the output to `output/`."""
