"""A model at work in a sandbox: ask, run a shell command, tell, until a reason to stop."""
