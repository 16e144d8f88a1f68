"""Git, kept at arm's length: the two-commit repository that is seen, and revisions as bytes.

No configuration, attribute, filter, hook or ignore file of a tree, of the user or of the machine takes part.
"""
