"""Access: who may do what, how often, and which addresses the daemon may connect to."""
