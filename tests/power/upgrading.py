"""Upgrades a data directory to a release with one more migration: `python -m tests.power.upgrading DIR`."""

import sys
from pathlib import Path

from svc_daemon.databases.contract import Connection
from svc_daemon.offline.upgrading import upgrade
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import MIGRATIONS


def add_shelves(connection: Connection) -> None:
    """Add a table."""
    connection.execute("CREATE TABLE shelves (id TEXT PRIMARY KEY) STRICT")


if __name__ == "__main__":
    MIGRATIONS["m999_shelves"] = add_shelves
    upgrade(DataFiles(Path(sys.argv[1])))
