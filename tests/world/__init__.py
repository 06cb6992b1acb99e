"""The world in a box: a whole federation in one process on virtual time, where a seed decides every delay, order and fault."""
