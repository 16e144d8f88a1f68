"""Coding agents: from a pull request and a review of it to a revision."""
