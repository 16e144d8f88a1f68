"""Result files, tables and Markdown over `core.score`; prints nothing itself."""
