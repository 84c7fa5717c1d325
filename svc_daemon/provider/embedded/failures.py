"""Converts exceptions of SQLite and the file system to those of a search provider."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from svc_daemon.errors import ShuttingDown, StorageError
from svc_daemon.provider.embedded.schema import WrongVersion
from svc_daemon.provider.errors import IndexDamaged, ProviderError, ProviderFailed, SearchTimeout


@contextmanager
def translated(team_id: str) -> Iterator[None]:
    """Within the block, raise exceptions of the team's index file as ProviderError."""
    try:
        yield
    except StorageError as error:
        if isinstance(error.__cause__, sqlite3.Error):
            raise from_sqlite(team_id, error.__cause__) from error
        if isinstance(error, ShuttingDown):
            message = f"The search index of {team_id} was closed meanwhile; try again."
            raise ProviderFailed(message, retryable=True) from error
        message = f"The search index of {team_id} can't be written: {error.message}"
        raise ProviderFailed(message, retryable=True) from error
    except sqlite3.Error as error:
        raise from_sqlite(team_id, error) from error
    except WrongVersion as error:
        raise IndexDamaged(team_id, str(error)) from error
    except ImportError as error:
        raise ProviderFailed(f"Vectors need the extra `semantic` ({error}): install it.", retryable=False) from error
    except OSError as error:
        raise ProviderFailed(f"The search index of {team_id}: {error}.", retryable=True) from error


def from_sqlite(team_id: str, error: sqlite3.Error) -> ProviderError:
    """Convert an SQLite error: to SearchTimeout, IndexDamaged or a retryable ProviderFailed."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_INTERRUPT":
        return SearchTimeout()
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return IndexDamaged(team_id, f"damaged: {error}")
    return ProviderFailed(f"The search index of {team_id} failed: {error}.", retryable=True)
