"""Office files from before 2007: compound files and RTF."""
