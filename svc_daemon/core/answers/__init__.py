"""Answers: what a question is searched by, what is quoted or cited, and whether that supports the answer."""
