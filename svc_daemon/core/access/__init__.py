"""Access control: API keys, rate limits, and the URLs and addresses that the daemon may connect to."""
