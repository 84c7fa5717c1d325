"""Uploads: sessions, batches, destination buckets, web pages, and the fields of sources."""
