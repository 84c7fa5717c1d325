"""The console's sessions and files: a code for one use, a key that ends with its maker, and files under a policy."""

import re
from typing import Any

import httpx
import pytest

from svc_daemon.api.handlers.machine.console import read_files
from svc_daemon.core.access import api_keys
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.test_keys import listed, make, opens, revoke

PATH = "/v1/console/sessions"


def exchange(daemon: Daemon, code: str) -> httpx.Response:
    """The exchange of a code, which needs no key."""
    return daemon.ask("POST", f"{PATH}/exchange", key="", json={"code": code})


def sign_in(daemon: Daemon, key: str | None = None) -> dict[str, Any]:
    """A key of the console."""
    return body_of(exchange(daemon, daemon.post(PATH, 201, key=key)["code"]), 201)


def test_a_code_gives_once_a_key_for_twelve_hours_that_may_what_its_maker_may(daemon: Daemon) -> None:
    bucket = daemon.make_bucket()
    maker = make(daemon, buckets=["inbox"])
    session = daemon.post(PATH, 201, key=maker["key"])
    assert session["expires_at"] <= daemon.context.clock.timestamp(60)
    answer = exchange(daemon, session["code"])
    made = body_of(answer, 201)
    assert answer.headers["Cache-Control"] == "no-store"
    assert (made["name"], made["capabilities"], made["buckets"]) == ("console", maker["capabilities"], [bucket])
    assert opens(daemon, made["key"])
    details_of(exchange(daemon, session["code"]), "invalid_project_key")
    daemon.advance(12 * 3600 - 60)
    assert opens(daemon, made["key"])
    daemon.advance(61)
    assert (opens(daemon, made["key"]), opens(daemon, maker["key"])) == (False, True)


def test_two_exchanges_at_once_give_one_key(daemon: Daemon) -> None:
    code = daemon.post(PATH, 201)["code"]
    ask = daemon.asking("POST", f"{PATH}/exchange", key="", json={"code": code})
    assert sorted(answer.status_code for answer in daemon.ask_together(ask, ask, ask)) == [201, 401, 401]


def test_a_code_is_refused_after_a_minute_and_is_no_key(daemon: Daemon) -> None:
    code = daemon.post(PATH, 201)["code"]
    as_key = api_keys.PREFIX + code.removeprefix(api_keys.CODE_PREFIX)
    for wrong in (code, as_key):
        details_of(daemon.ask("GET", "/v1/buckets", key=wrong), "invalid_project_key")
    for wrong in (as_key, code[:-1], code + "0", "sc-", "x", daemon.key):
        details_of(exchange(daemon, wrong), "invalid_project_key")
    daemon.advance(60)
    details_of(exchange(daemon, code), "invalid_project_key")


def test_a_key_of_the_console_ends_with_its_maker_and_with_its_maker_s_maker(daemon: Daemon) -> None:
    maker = make(daemon, preset="admin")
    first = sign_in(daemon, maker["key"])
    second = sign_in(daemon, first["key"])
    waiting = daemon.post(PATH, 201, key=second["key"])["code"]
    own = sign_in(daemon)
    body_of(revoke(daemon, maker["id"]))
    assert [opens(daemon, each["key"]) for each in (first, second, own)] == [False, False, True]
    details_of(exchange(daemon, waiting), "invalid_project_key")


def test_a_key_of_the_console_expires_with_its_maker_at_the_latest(daemon: Daemon) -> None:
    soon = daemon.context.clock.timestamp(100)
    key = make(daemon, preset="read", expires_at=soon)["key"]
    assert sign_in(daemon, key)["expires_at"] == soon
    daemon.advance(70)
    session = daemon.post(PATH, 201, key=key)
    assert session["expires_at"] == soon


def test_keys_of_the_console_are_listed_and_revoked_and_forgotten_once_they_have_expired(daemon: Daemon) -> None:
    kept, idle = sign_in(daemon), sign_in(daemon)
    assert [each["id"] for each in listed(daemon) if each["name"] == "console"] == [kept["id"], idle["id"]]
    body_of(revoke(daemon, idle["id"]))
    assert (opens(daemon, kept["key"]), opens(daemon, idle["key"])) == (True, False)
    # A stored response belongs to its key, which stays as long.
    daemon.make_bucket()
    assert daemon.upload(key=kept["key"], repeat_key="k").status_code == 201
    daemon.advance(12 * 3600)
    daemon.post(PATH, 201)
    names = [each["id"] for each in listed(daemon) if each["name"] == "console"]
    assert (kept["id"] in names, idle["id"] in names) == (True, False)


def test_the_console_s_files_need_no_key_and_may_load_and_send_nothing_elsewhere(daemon: Daemon) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for name in ("", "app.js", "style.css", "icon.svg"):
        answer = daemon.ask("GET", f"/console/{name}", key="", headers=foreign)
        policy = dict(each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";"))
        assert answer.status_code == 200, name
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert {policy[f"{each}-src"] for each in ("script", "style", "connect", "img")} == {"'self'"}
        assert (answer.headers["X-Content-Type-Options"], answer.headers["Referrer-Policy"]) == (
            "nosniff",
            "no-referrer",
        )
        again = daemon.ask("GET", f"/console/{name}", key="", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert daemon.ask("GET", "/console", key="").headers["Location"] == "/console/"


@pytest.mark.parametrize("path", ["/console/x.js", "/console/..%2fpaths.py", "/console/__init__.py", "/console/a/b"])
def test_nothing_but_the_console_s_files_is_served(shared: Daemon, path: str) -> None:
    details_of(shared.ask("GET", path, key=""), "not_found")


def test_the_console_is_small_and_loads_only_what_it_has() -> None:
    content = {name: data.decode() for name, data in read_files().items()}
    assert sum(len(text.encode()) for name, text in content.items() if name.endswith(".js")) < 60_000
    for name, text in content.items():
        loaded = re.findall(r"(?:src=|href=|from |import )\"([^\"#]+)\"", text)
        assert {each.removeprefix("./") for each in loaded} <= set(content), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(| style=| on\w+=\"", text), name


def test_only_reading_the_console_s_files_is_exempt_from_the_check_of_origins(shared: Daemon) -> None:
    foreign = {"Origin": "https://evil.example"}
    for method, path in (("POST", "/console/"), ("POST", PATH), ("POST", f"{PATH}/exchange"), ("GET", "/console")):
        details_of(shared.ask(method, path, headers=foreign), "origin_not_allowed")
    assert shared.ask("GET", "/console/", headers={"Host": "evil.example"}).status_code == 421
    assert shared.ask("GET", "/v1/buckets", headers={"Origin": "http://127.0.0.1"}).status_code == 200


def test_a_console_that_is_off_gives_neither_files_nor_keys(daemon: Daemon) -> None:
    daemon.nodes[0].app.state.has_console = False
    details_of(daemon.ask("POST", PATH), "not_found")
    details_of(exchange(daemon, "sc-x"), "not_found")
