"""The HTTP contract that daemon and command line share: models per noun, error codes, header names.

Owns names and shapes. Imports nothing of ours, decides nothing.
"""
