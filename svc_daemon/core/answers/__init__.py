"""Answers: the search for a question, the quotes and citations, and whether they support the answer."""
