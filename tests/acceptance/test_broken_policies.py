"""A default agent whose stored policy is broken: it finds nothing, and each check shows why."""

import sqlite3

import pytest

from tests.acceptance.installations import Installation


@pytest.mark.sqlite
def test_a_broken_default_agent_finds_nothing_and_is_reported(installation: Installation) -> None:
    notes = installation.root / "notes.md"
    notes.write_text("The umber quay was built of grey stone.\n")
    assert installation.svc("upload", str(notes), "-b", "inbox").exit == 0
    installation.stop()
    with sqlite3.connect(installation.files.state) as state:
        state.execute("""UPDATE agents SET policy = '{"scope": "team"}' WHERE id = 'default'""")
    state.close()
    assert installation.verify().exit == 1
    installation.start()
    doctor = installation.svc("doctor", "--json")
    (check,) = [check for check in doctor.json["checks"] if check["check"] == "agents"]
    assert (doctor.exit, check["state"]) == (3, "failed")
    assert "default finds nothing. The stored policy is not an object" in check["text"]
    assert "svc agent set default" in check["hint"]
    assert installation.svc("agent", "set", "default", "--bucket", "*").exit == 0
    assert len(installation.svc("search", "umber", "--json").json["data"]) == 1
