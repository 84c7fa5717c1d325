"""Measures retrieval: what a file of queries expects, how good the results are, and why each miss was missed."""
