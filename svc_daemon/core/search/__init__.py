"""Search: how hits are ranked, which filters exist, and what an agent may retrieve."""
