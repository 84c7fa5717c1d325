"""The commands of `svc`: one module for each noun.

Each module is a Typer app, whose functions parse options, send requests and render the response.
"""
