"""One module per noun: a Typer app whose functions parse options, send a request and render the response."""
