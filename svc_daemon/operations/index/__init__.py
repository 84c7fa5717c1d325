"""From a queued task to a searchable document: claims, extraction, indexing, bucket sync and rebuilds."""
