"""Documents and questions that people made who had not seen the code, as `docs/explanation/grounding.md` tells.

Each set is a JSON file: `documents` by their names, and `questions`. A question that the documents answer has its
`answers`, of which the quote must have one, and its `document`.
"""
