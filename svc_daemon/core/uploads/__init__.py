"""Uploads: sessions, batches and idempotency, and the fields of what is uploaded."""
