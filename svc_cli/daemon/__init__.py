"""Finds, starts and installs the daemon, and connects to it or to the service at another address."""
