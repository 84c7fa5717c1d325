"""One module per noun: a Typer app whose functions parse options, make one call and render the answer."""
