"""The rows of the state database, one module for each noun."""
