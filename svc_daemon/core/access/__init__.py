"""Access control: API keys, model ids, rate limits, and the URLs and addresses that the daemon may connect to."""
