"""A table of names and values about the installation, such as its id."""

from svc_daemon.databases.contract import Connection


def find_fact(connection: Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM facts WHERE name = :name", {"name": name}).fetchone()
    return row["value"] if row else None


def list_facts(connection: Connection) -> dict[str, str]:
    return {row["name"]: row["value"] for row in connection.execute("SELECT name, value FROM facts").fetchall()}


def put_fact(connection: Connection, name: str, value: str) -> None:
    """Store the value under the name, replacing any earlier value."""
    connection.execute(
        "INSERT INTO facts (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        {"name": name, "value": value},
    )


def delete_fact(connection: Connection, name: str) -> None:
    connection.execute("DELETE FROM facts WHERE name = :name", {"name": name})


def keep_fact(connection: Connection, name: str, value: str) -> str:
    """Store the value, unless the name has one already. Returns the stored value."""
    connection.execute(
        "INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
        {"name": name, "value": value},
    )
    return find_fact(connection, name) or value
