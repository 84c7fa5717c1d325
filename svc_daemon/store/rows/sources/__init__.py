"""Sources: their own rows, the buckets that they are in, how they are listed, found and fetched again, and scans."""
