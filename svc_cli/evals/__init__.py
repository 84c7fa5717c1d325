"""Judging retrieval: what a file of queries expects, how good the answers are, and why each miss missed."""
