"""Excel files, with the binary ones."""
