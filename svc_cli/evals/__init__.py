"""Measures retrieval quality: runs the queries of a file, scores the results, and explains what was not found."""
