"""The layers around the routes: what every request passes through, in the order that `hardening` gives."""
