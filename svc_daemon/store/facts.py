"""What an installation knows about itself, by name."""

from sqlite3 import Connection


def find_fact(connection: Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM facts WHERE name = :name", {"name": name}).fetchone()
    return row["value"] if row else None


def create_fact(connection: Connection, name: str, value: str) -> None:
    connection.execute("INSERT INTO facts (name, value) VALUES (:name, :value)", {"name": name, "value": value})
