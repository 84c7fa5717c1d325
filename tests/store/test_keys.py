"""Keys as stored: read back whole, found by id, live until they expire or are revoked."""

from sqlite3 import Connection

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store.keys import create_key, find_key, get_key, list_keys, revoke_key
from svc_daemon.store.teams import TeamRow, create_team, find_team, list_team_ids, list_teams
from tests.store.rows import LATER, NOW, OURS, THEIRS, make_key, plan


@pytest.mark.parametrize("names", [None, (), ("a", "ü")])
def test_a_key_reads_back_as_it_was_written(connection: Connection, names: tuple[str, ...] | None) -> None:
    key = make_key(id="key_1", capabilities=("a", "b"), models=names, buckets=names, expires_at=LATER)
    create_key(connection, key)
    assert find_key(connection, "key_1") == key


def test_a_key_that_is_not_there_is_none(connection: Connection) -> None:
    assert find_key(connection, "key_none") is None


LIVES: dict[tuple[str | None, str | None], bool] = {
    (None, None): True,
    ("2026-01-01T12:00:00.001Z", None): True,
    (NOW, None): False,
    ("2026-01-01T11:59:59.999Z", None): False,
    (None, "2026-01-01T11:00:00.000Z"): False,
    (LATER, "2026-01-01T11:00:00.000Z"): False,
}


def test_a_key_lives_until_it_expires_or_is_revoked() -> None:
    lives = {cell: make_key(expires_at=cell[0], revoked_at=cell[1]).is_live(NOW) for cell in LIVES}
    assert lives == LIVES


def test_a_key_is_found_through_its_primary_key(connection: Connection) -> None:
    assert "SEARCH keys USING PRIMARY KEY (id=?)" in plan(connection, lambda: find_key(connection, "key_1"))


def test_teams_are_listed_oldest_first(connection: Connection) -> None:
    create_team(connection, "team_a", "first by id", NOW)
    assert list_team_ids(connection) == ["team_a", OURS, THEIRS]


def test_a_team_is_found_by_its_id_and_by_its_name(connection: Connection) -> None:
    team = TeamRow(id="team_z", name="ours and theirs", created_at=NOW)
    create_team(connection, team.id, team.name, team.created_at)
    assert [find_team(connection, name) for name in (team.id, team.name, "none")] == [team, team, None]
    assert list_teams(connection)[-1] == team


def test_keys_are_listed_and_read_within_their_team(connection: Connection) -> None:
    create_key(connection, make_key(id="key_2"))
    assert [key.id for key in list_keys(connection, OURS)] == ["key_2", f"key_{OURS}"]
    assert get_key(connection, OURS, "key_2").team_id == OURS
    for team_id, key_id in ((THEIRS, "key_2"), (OURS, "key_none")):
        with pytest.raises(NotFound, match=key_id):
            get_key(connection, team_id, key_id)


def test_a_key_is_revoked_once_and_by_its_team_alone(connection: Connection) -> None:
    create_key(connection, make_key(id="key_2"))
    for team_id, moment, revoked_at in ((THEIRS, NOW, None), (OURS, NOW, NOW), (OURS, LATER, NOW)):
        revoke_key(connection, team_id, "key_2", moment)
        assert get_key(connection, OURS, "key_2").revoked_at == revoked_at
