"""The ways out: deletions of sources, buckets and teams, and the clean-up behind them."""
