"""A group of commands for each noun: buckets, sources, batches, agents, events, webhooks and keys."""
