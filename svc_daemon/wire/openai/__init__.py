"""Models of the routes for clients of OpenAI, and of the check of citations."""
