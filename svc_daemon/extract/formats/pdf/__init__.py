"""PDF, by PDFium."""
