"""Answers: the search query for a question, quotes and citations, and whether they support the answer."""
