"""The one door to an OpenAI-compatible endpoint: retries, budget, usage, shared completions."""
