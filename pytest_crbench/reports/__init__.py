"""Result files, tables and Markdown over `statistics.score`; prints nothing itself."""
