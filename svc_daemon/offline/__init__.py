"""What works on a data directory under its lock, without the server: backup, restore, verify, upgrades."""
