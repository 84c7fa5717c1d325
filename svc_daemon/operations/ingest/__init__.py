"""The ways in: files, upload sessions, batches, packs, URLs and questions with answers."""
