"""`svc-daemon` of a release with one more migration, as a program with the same arguments."""

import runpy

from svc_daemon.databases.contract import Connection
from svc_daemon.store.migrations import MIGRATIONS

COLOURS = "m999_colours"


def add_colours(connection: Connection) -> None:
    """Add a colour to each fact."""
    connection.execute("ALTER TABLE facts ADD COLUMN colour TEXT")
    connection.execute("UPDATE facts SET colour = 'umber'")


if __name__ == "__main__":
    MIGRATIONS[COLOURS] = add_colours
    runpy.run_module("svc_daemon", run_name="__main__", alter_sys=True)
