"""What all operations use: authorization, idempotency, events, and the objects that the API returns."""
