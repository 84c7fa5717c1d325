"""HTML as a browser shows it, and the formats that hold it: books and notebooks."""
