"""One pull request under way: its stages, their store, what a run measures."""
