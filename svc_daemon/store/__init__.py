"""All SQL on the state database, and all access to blob files.

One module per kind of record. The functions run in the caller's transaction. A function that finds rows by an id or
name from a request also takes the team's id, so that no team sees the rows of another team.
"""
