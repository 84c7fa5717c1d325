"""How questions are answered: building the query, choosing quotes, checking citations, judging what is grounded."""
