"""Fills the state of a cluster with sources by SQL: they have rows like indexed ones, and neither bytes nor text."""

import psycopg

_NUMBERED = "FROM generate_series(%(first)s::int, %(last)s::int) AS n"
_FILLING = (
    (
        "INSERT INTO sources (id, team_id, type, status, generation, title, filename, content_type, size_bytes, sha256,"
        " tags, metadata, warnings, task_id, extraction, created_at, updated_at)"
        " SELECT 'src_00filled' || lpad(n::text, 18, '0'), b.team_id, 'file', 'active', 1, 'Title ' || n, n || '.md',"
        " 'text/markdown', 2000, encode(sha256(n::text::bytea), 'hex'), '[]', '{{}}', '[]',"
        " 'task_00filled' || lpad(n::text, 18, '0'), '{{\"chunks\": 2}}', b.created_at, b.created_at {0}, buckets b"
    ),
    (
        "INSERT INTO tasks (id, team_id, type, status, source_id, attempt, token, max_attempts, chunks_done,"
        " created_at, started_at, finished_at, lane)"
        " SELECT 'task_00filled' || lpad(n::text, 18, '0'), b.team_id, 'source_indexing', 'succeeded',"
        " 'src_00filled' || lpad(n::text, 18, '0'), 1, 1, 3, 2, b.created_at, b.created_at, b.created_at, 'prompt'"
        " {0}, buckets b"
    ),
    (
        "INSERT INTO memberships (source_id, bucket_id, team_id, sync_status, attempt, created_at)"
        " SELECT 'src_00filled' || lpad(n::text, 18, '0'), b.id, b.team_id, 'active', 0, b.created_at {0}, buckets b"
    ),
    (
        "INSERT INTO idempotency (key_id, key, route, fingerprint, answer, created_at)"
        " SELECT k.id, md5(n::text), 'POST', 'f', '{{\"id\": \"src_00filled' || lpad(n::text, 18, '0') || '\"}}',"
        " b.created_at {0}, buckets b, keys k"
    ),
)


def fill_state(url: str, first: int, last: int) -> None:
    """Add the sources with these numbers to the only bucket of a state with one key."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _FILLING:
            connection.execute(statement.format(_NUMBERED).encode(), {"first": first, "last": last})
        # As the server does by itself after so many new rows, at a time of its own.
        connection.execute("VACUUM ANALYZE")
