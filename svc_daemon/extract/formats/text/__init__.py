"""Plain text, and the formats that are text with marks: Markdown, languages of documentation, CSV."""
