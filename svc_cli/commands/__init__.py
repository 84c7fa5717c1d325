"""The commands of `svc`: one module for each command or group of commands, such as `svc bucket`.

Each module is a Typer app, whose functions parse options, send requests and render the response.
"""
