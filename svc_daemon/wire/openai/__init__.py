"""Models of the routes for clients of OpenAI: chat completions and responses."""
