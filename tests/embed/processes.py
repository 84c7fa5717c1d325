"""Looking at processes of models."""

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Whether it runs no more; where nobody reaps it, it is still listed."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
