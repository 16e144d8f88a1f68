"""The scoring of c-CRAB: hidden tests, run on the unmodified head and on a revision."""
