"""What a command imports of the contract when it runs: no module here imports pydantic, which takes its time."""
