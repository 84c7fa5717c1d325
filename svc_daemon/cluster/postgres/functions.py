"""SQL functions that the statements in `store` call, and that PostgreSQL lacks.

PostgreSQL inlines functions that are a single SELECT, which makes filters fast. `this_turn` returns the number of
the current transaction, and `unsettled_turn` the number of the oldest running transaction. All ended transactions have
lower numbers than `next_turn` (see `store.rows.events`).
"""

import hashlib

from svc_daemon.cluster.postgres.servers import ServerConnection

#: Collations whose `lower` handles all scripts, best first. No server has all of them.
_COLLATIONS = ("pg_unicode_fast", "und-x-icu", "pg_c_utf8", "C.utf8", "en_US.utf8", "default")
#: In the statements in `store`, JSON paths are always `$.key` or `$."any key"`.
_FUNCTIONS = """\
CREATE OR REPLACE FUNCTION json_key(path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN path LIKE '$."%"' THEN substr(path, 4, length(path) - 4) ELSE substr(path, 3) END
$$;

CREATE OR REPLACE FUNCTION json_each(document text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE ROWS 20 AS $$
  SELECT element FROM json_array_elements_text($1::json) AS elements (element)
$$;

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT document::json ->> json_key(path)
$$;

CREATE OR REPLACE FUNCTION json_type(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE json_typeof(document::json -> json_key(path))
    WHEN 'string' THEN 'text'
    WHEN 'boolean' THEN document::json ->> json_key(path)
    WHEN 'number' THEN CASE WHEN document::json ->> json_key(path) ~ '^-?[0-9]+$' THEN 'integer' ELSE 'real' END
    ELSE json_typeof(document::json -> json_key(path)) END
$$;

CREATE OR REPLACE FUNCTION json_valid(document text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  PERFORM document::json;
  RETURN true;
EXCEPTION WHEN data_exception THEN
  RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION texts_as_json(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT array_to_json(texts)::text
$$;

CREATE OR REPLACE AGGREGATE json_group_array(text) (
  SFUNC = array_append, STYPE = text[], INITCOND = '{}', FINALFUNC = texts_as_json
);

CREATE OR REPLACE FUNCTION texts_with_commas(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT array_to_string(texts, ',')
$$;

CREATE OR REPLACE AGGREGATE group_concat(text) (
  SFUNC = array_append, STYPE = text[], FINALFUNC = texts_with_commas
);

CREATE OR REPLACE FUNCTION this_turn() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT pg_current_xact_id()::text::bigint
$$;

CREATE OR REPLACE FUNCTION unsettled_turn() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint
$$;

CREATE OR REPLACE FUNCTION next_turn() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint
$$;

CREATE OR REPLACE FUNCTION lowercase(letters text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT lower(letters COLLATE pg_catalog."the best")
$$;

CREATE OR REPLACE FUNCTION "like"(pattern text, letters text, mark text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT letters ILIKE pattern ESCAPE mark
$$;

CREATE OR REPLACE FUNCTION writer_number() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT COALESCE(NULLIF(current_setting('svc.writer', true), ''), '0')::bigint
$$"""


def make_functions(connection: ServerConnection) -> None:
    """Create the functions in the current schema, replacing older ones."""
    known = {
        row["collname"]
        for row in connection.execute(
            "SELECT collname FROM pg_collation WHERE collname IN (SELECT unnest(CAST(:names AS TEXT[])))"
            " AND collencoding IN (-1, pg_char_to_encoding('UTF8'))",
            {"names": "{" + ",".join(f'"{name}"' for name in _COLLATIONS) + "}"},
        )
    }
    wanted = _FUNCTIONS.replace("the best", next(name for name in _COLLATIONS if name in known))
    version = f"svc {hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
    made = connection.execute(
        "SELECT obj_description(to_regprocedure('lowercase(text)'), 'pg_proc') AS version"
    ).fetchone()
    if made["version"] != version:
        for statement in wanted.split(";\n\n"):
            connection.run(statement)
        connection.run(f"COMMENT ON FUNCTION lowercase(text) IS '{version}'")
