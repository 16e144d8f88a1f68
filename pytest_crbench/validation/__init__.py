"""Whether the hidden tests of a dataset hold."""
