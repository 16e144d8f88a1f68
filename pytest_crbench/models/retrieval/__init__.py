"""Finding the parts of a repository that help to judge a change: chunks, an index of them, queries."""
