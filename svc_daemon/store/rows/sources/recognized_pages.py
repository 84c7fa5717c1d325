"""Pages of scans that were recognised, and how far the task of a scan is.

Pages take seconds each, so each is stored as soon as it is read: after a crash, only the page in progress is read
again. They stay as long as the source has the same bytes, for rebuilds of the index.
"""

from collections.abc import Sequence

from svc_daemon.core.text.chunking import RecognizedPage
from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.tasks import INDEXING


def list_pages(connection: Connection, source_id: str, sha256: str) -> dict[int, RecognizedPage]:
    """Map page numbers to what was recognised in the bytes with this hash, in order."""
    rows = connection.execute(
        "SELECT page, text, confidence, problem FROM recognized_pages"
        " WHERE source_id = :source_id AND sha256 = :sha256 ORDER BY page",
        {"source_id": source_id, "sha256": sha256},
    ).fetchall()
    return {row["page"]: RecognizedPage(**{name: row[name] for name in RecognizedPage._fields}) for row in rows}


def store_page(connection: Connection, task: TaskRow, sha256: str, page: RecognizedPage, done: int, total: int) -> bool:
    """Store a page of the task's source, and how many are read. Returns False if the worker has lost its claim."""
    is_held = note_scan(connection, task, done, total, is_progress=True)
    if is_held and task.source_id is not None:
        store_pages(connection, task.source_id, sha256, [page])
    return is_held


def store_pages(connection: Connection, source_id: str, sha256: str, pages: Sequence[RecognizedPage]) -> None:
    """Store what was recognised in the bytes with this hash."""
    connection.executemany(
        "INSERT INTO recognized_pages (source_id, page, sha256, text, confidence, problem)"
        " VALUES (:source_id, :page, :sha256, :text, :confidence, :problem)"
        " ON CONFLICT (source_id, page) DO UPDATE SET sha256 = excluded.sha256, text = excluded.text,"
        " confidence = excluded.confidence, problem = excluded.problem",
        [{"source_id": source_id, "sha256": sha256, **page._asdict()} for page in pages],
    )


def delete_pages(connection: Connection, source_id: str, *, only_problems: bool = False) -> None:
    """Delete the source's pages, or only those that could not be read."""
    connection.execute(
        "DELETE FROM recognized_pages WHERE source_id = :source_id AND (:all = 1 OR problem <> '')",
        {"source_id": source_id, "all": int(not only_problems)},
    )


def count_scans(connection: Connection, bucket_id: str) -> tuple[int, int]:
    """Return how many sources of the bucket wait until their pages are recognised, and how many pages these are."""
    row = connection.execute(
        "SELECT COUNT(*) AS scans, COALESCE(SUM(t.pages_total - t.pages_done), 0) AS pages FROM tasks t"
        " JOIN memberships m ON m.source_id = t.source_id AND m.bucket_id = :bucket_id"
        " WHERE t.finished_at IS NULL AND t.type = :type AND t.status IN ('queued', 'running') AND t.lane = 'scan'",
        {"bucket_id": bucket_id, "type": INDEXING},
    ).fetchone()
    return int(row["scans"]), int(row["pages"])


def note_scan(connection: Connection, task: TaskRow, done: int, total: int, *, is_progress: bool) -> bool:
    """Record how many pages of a scan are read. Returns False if the worker has lost its claim.

    `is_progress` says that this claim has read a page. Then its attempt isn't counted if it ends early, nor are those
    before it, or deaths of the process: their cause was not the document, which has come further since.
    """
    cursor = connection.execute(
        "UPDATE tasks SET stage = 'ocr', pages_done = :done, pages_total = :total,"
        " pages_token = CASE :is_progress WHEN 1 THEN token ELSE pages_token END,"
        " attempt = CASE :is_progress WHEN 1 THEN 1 ELSE attempt END,"
        " deaths = CASE :is_progress WHEN 1 THEN 0 ELSE deaths END"
        " WHERE id = :id AND token = :token AND status = 'running'",
        {"id": task.id, "token": task.token, "done": done, "total": total, "is_progress": int(is_progress)},
    )
    return cursor.rowcount == 1


def has_progress(connection: Connection, task: TaskRow) -> bool:
    """Whether the claim has read a page of a scan."""
    row = connection.execute(
        "SELECT 1 FROM tasks WHERE id = :id AND token = :token AND pages_token = token",
        {"id": task.id, "token": task.token},
    ).fetchone()
    return row is not None
