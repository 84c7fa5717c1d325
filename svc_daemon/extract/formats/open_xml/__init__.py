"""Office Open XML: what Word, PowerPoint and Excel files have in common, and a folder for each of them."""
