"""Office Open XML: what Word, PowerPoint and Excel files have in common, and the larger pieces of their readers."""
