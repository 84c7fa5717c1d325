"""Text: media type detection, and splitting text into chunks, sentences and words."""
