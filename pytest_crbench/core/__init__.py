"""The values and decisions of an evaluation; imports neither pytest nor any capability."""
