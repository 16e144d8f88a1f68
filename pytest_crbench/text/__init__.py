"""Text of strangers: diffs, JSON, credentials to hide, what is safe to print. Imports nothing of ours."""
