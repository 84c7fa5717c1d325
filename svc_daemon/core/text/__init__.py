"""Text: detects media types, and splits text into chunks, sentences and words."""
