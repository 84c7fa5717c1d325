"""The service's rules, as functions without side effects: no I/O, no clock, no randomness, no logging."""
