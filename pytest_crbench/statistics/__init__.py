"""Rates, intervals, comparisons and thresholds; the rows that they are counted from."""
