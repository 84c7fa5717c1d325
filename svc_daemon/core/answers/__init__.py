"""How questions are answered: the search query, choosing quotes, checking citations, and deciding what is grounded."""
