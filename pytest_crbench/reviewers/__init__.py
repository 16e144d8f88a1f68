"""Reviewers under test: who comments on a pull request, and how their output is read."""
