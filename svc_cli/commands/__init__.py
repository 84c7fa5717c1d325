"""The commands of `svc`, one module for each command or group of commands, and what they share."""
