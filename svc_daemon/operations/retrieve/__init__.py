"""Searches, answers, and the agents whose policies limit them."""
