"""Commands of every day: uploads, syncs, what is ready, searches and answers."""
