"""Searches and answers, within what agents and keys allow."""
