"""The middleware around the routes; `hardening` defines its order."""
