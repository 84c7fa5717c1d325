"""A default agent with a broken stored policy finds nothing until the policy is set again, and `doctor` reports it."""

import sqlite3

import pytest

from tests.acceptance.installations import Installation


@pytest.mark.rule("service.agents")
@pytest.mark.sqlite
def test_broken_policy_of_the_default_agent_is_reported_and_can_be_set_again(installation: Installation) -> None:
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
