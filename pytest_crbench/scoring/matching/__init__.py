"""Matching a review to reference comments, by place and by meaning, one to one; rules in docs/matching.md."""
