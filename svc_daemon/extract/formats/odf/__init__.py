"""OpenDocument: texts, sheets, decks and drawings."""
