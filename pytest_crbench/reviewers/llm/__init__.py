"""Reviewers that a model drives, as in AACR-Bench (arXiv 2601.19494): per hunk, or as an agent."""
