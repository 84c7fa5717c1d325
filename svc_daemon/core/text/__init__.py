"""Text: what kind bytes are, and how text is cut into chunks, sentences and words."""
