"""Keys and teams: found by id, live until they expire or are revoked."""

from sqlite3 import Connection

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store.keys import create_key, find_key, get_key, list_keys, revoke_key
from svc_daemon.store.teams import TeamRow, create_team, find_team, list_team_ids, list_teams
from tests.store.rows import LATER, NOW, OURS, THEIRS, make_key

EARLIER = "2026-01-01T11:59:59.999Z"
#: When it expires and when it was revoked: whether it lives now.
LIVES: dict[tuple[str | None, str | None], bool] = {
    (None, None): True,
    ("2026-01-01T12:00:00.001Z", None): True,
    (NOW, None): False,
    (EARLIER, None): False,
    (None, EARLIER): False,
    (LATER, EARLIER): False,
}


def test_a_key_reads_back_as_it_was_written(db: Connection) -> None:
    for number, names in enumerate((None, (), ("a", "ü"))):
        key = make_key(id=f"key_{number}", capabilities=("a", "b"), models=names, buckets=names, expires_at=LATER)
        create_key(db, key)
        assert find_key(db, key.id) == key
    assert find_key(db, "key_none") is None


def test_a_key_lives_until_it_expires_or_is_revoked() -> None:
    assert {cell: make_key(expires_at=cell[0], revoked_at=cell[1]).is_live(NOW) for cell in LIVES} == LIVES


def test_teams_are_listed_oldest_first_and_found_by_id_and_by_name(db: Connection) -> None:
    team = TeamRow(id="team_a", name="ours and theirs", created_at=NOW)
    create_team(db, team.id, team.name, team.created_at)
    assert list_team_ids(db) == [row.id for row in list_teams(db)] == ["team_a", OURS, THEIRS]
    assert [find_team(db, name) for name in (team.id, team.name, "none")] == [team, team, None]


def test_keys_are_listed_read_and_revoked_within_their_team_and_revoked_once(db: Connection) -> None:
    create_key(db, make_key(id="key_2"))
    assert [key.id for key in list_keys(db, OURS)] == ["key_2", f"key_{OURS}"]
    for team_id, key_id in ((THEIRS, "key_2"), (OURS, "key_none")):
        with pytest.raises(NotFound, match=key_id):
            get_key(db, team_id, key_id)
    for team_id, moment, revoked_at in ((THEIRS, NOW, None), (OURS, NOW, NOW), (OURS, LATER, NOW)):
        revoke_key(db, team_id, "key_2", moment)
        assert get_key(db, OURS, "key_2").revoked_at == revoked_at
