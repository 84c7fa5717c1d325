"""What all operations use: authorization, rows that a key can reach, idempotency, events, and the API's objects."""
