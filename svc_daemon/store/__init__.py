"""All SQL on the state database, and all access to blob files.

One module per kind of record. Functions run in the caller's transaction and decide nothing. Look-ups by an id or name
from a request also take the team's id, so that no team sees another's rows.
"""
