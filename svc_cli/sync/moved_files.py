"""Recognizes moved and renamed files: a new file with the same bytes as a deleted one."""

from collections import defaultdict
from collections.abc import Iterable

from svc_cli.sync.index import FileRow, State


def match_moves(
    newcomers: Iterable[FileRow], gone: Iterable[FileRow]
) -> tuple[list[tuple[FileRow, FileRow]], list[FileRow]]:
    """Pair each new file with a deleted file of the same hash, preferably of the same name.

    Returns the pairs (new, deleted), and the new files without a match.
    """
    by_hash: defaultdict[str, list[FileRow]] = defaultdict(list)
    for row in sorted(gone, key=lambda row: row.path):
        if row.source_id and row.state in (State.READY, State.SENT):
            by_hash[row.sha256].append(row)
    moves, rest = [], []
    for new in sorted(newcomers, key=lambda new: new.path):
        known = by_hash[new.sha256]
        if not known:
            rest.append(new)
            continue
        named_so = [row for row in known if _name(row.path) == _name(new.path)]
        best = (named_so or known)[0]
        known.remove(best)
        moves.append((new, best))
    return moves, rest


def _name(path: str) -> str:
    return path.rpartition("/")[2]
