"""What clients ask of the service while it is recorded."""

from collections.abc import Callable
from typing import Any

import httpx

from tests.acceptance.calls import list_sources, make_bucket, wait_task
from tests.acceptance.test_events import list_events
from tests.power.diaries import Ask, Batched, Document, Resumed, count_held, put_rest
from tests.power.scenes import Scene


def first_upload(scene: Scene) -> None:
    """One file in one call, from the first start on."""
    scene.start()
    with scene.installation.client() as client:
        scene.diary.repeat("make a bucket", _make_alpha, client)
        scene.diary.wait_ready(client, scene.diary.upload(client, Document("first")))


def one_more(scene: Scene) -> None:
    """One file for a service that has run before."""
    scene.prepare()
    scene.start()
    with scene.installation.client() as client:
        scene.diary.wait_ready(client, scene.diary.upload(client, Document("more")))


def uploads(scene: Scene) -> None:
    """All ways of uploading, with a kill and a stop of the daemon between them."""
    scene.prepare()
    scene.start()
    diary = scene.diary
    with scene.installation.client() as client:
        one = diary.upload(client, Document("one"))
        _send_in_parts(scene, client, Resumed("parts"))
        batched = _send_batch(scene, client, Batched("batchx0"))
        diary.wait_ready(client, one, *batched)
    scene.installation.kill()
    scene.start()
    with scene.installation.client() as client:
        # Nothing is written for this replay: what it reports must be durable already.
        diary.repeat("replay one", Document("one").send, client)
        packed = _send_batch(scene, client, Batched("packx0", count=9, is_pack=True))
        diary.wait_ready(client, *packed)
        question = {"question": "Where?", "answer": "At the quay."}
        _create(scene, client, "/v1/buckets/alpha/qa", question, "question")
    scene.installation.stop()
    scene.start()
    with scene.installation.client() as client:
        diary.wait_ready(client, diary.upload(client, Document("last")))


def removals(scene: Scene) -> None:
    """Sources that are replaced, moved between buckets and deleted, and a bucket that is deleted with its sources."""
    old, gone, shared = scene.prepare("old", "gone", "shared")
    scene.start()
    diary = scene.diary
    with scene.installation.client() as client:
        diary.wait_ready(client, diary.upload(client, Document("new", replaces=old)))
        diary.delete(client, gone)
        diary.delete(client, diary.upload(client, Document("brief")))
        alone = diary.upload(client, Document("alone", "beta"))
        diary.wait_ready(client, alone)
        path = "/v1/buckets/beta/sources"
        diary.ask(
            "attach",
            lambda: client.post(path, json={"source_id": shared}).raise_for_status(),
            lambda promised, _: promised.facts.update(attach=_has("beta", shared)),
            # It is ready again once the index knows its new bucket.
            begins=lambda promised: promised.ready.discard(shared),
        )
        diary.wait_ready(client, shared)
        title = {"title": "Harbour"}
        _change(
            scene, client, "rename", lambda client: client.patch(f"/v1/sources/{shared}", json=title), _title(shared)
        )
        deleted = diary.ask(
            "delete beta",
            lambda: client.delete("/v1/buckets/beta?force=true").raise_for_status().json(),
            lambda promised, _: promised.facts.update(beta=_lacks_beta),
            again=lambda client: client.delete("/v1/buckets/beta?force=true"),
            begins=lambda promised: promised.doubt(alone, "attach"),
        )
        diary.ask(
            "wait for its end",
            lambda: wait_task(client, deleted["deletion"]["task_id"]),
            lambda promised, _: promised.delete(alone),
        )


def keys(scene: Scene) -> None:
    """A key that is made and revoked, the secret of webhooks, and a team."""
    scene.prepare("one")
    scene.start()
    diary, secret = scene.diary, "/v1/webhooks/secret"
    with scene.installation.client() as client:
        key = diary.ask(
            "make a key",
            lambda: client.post("/v1/keys", json={"name": "ci", "preset": "read"}).raise_for_status().json(),
            lambda promised, key: promised.facts.update(key=_works(key["key"], 200)),
        )
        diary.ask(
            "make a webhook secret",
            lambda: client.post(f"{secret}/rotate").raise_for_status().json()["secret"],
            lambda promised, made: promised.facts.update(
                secret=lambda client: _same(client.get(secret).json()["secret"], made)
            ),
        )
        diary.ask(
            "revoke the key",
            lambda: client.delete(f"/v1/keys/{key['id']}").raise_for_status(),
            lambda promised, _: promised.facts.update(key=_works(key["key"], 401)),
            begins=lambda promised: promised.facts.pop("key"),
        )
    diary.ask(
        "make a team",
        lambda: scene.installation.operate("team", "create", "second", "--json").json,
        lambda promised, _: promised.facts.update(team=_has_team(scene)),
    )


def settings(scene: Scene) -> None:
    """An agent, the chunking of a bucket, and the log of events."""
    scene.prepare("one")
    scene.start()
    agent = {"agent_id": "clerk", "name": "Clerk", "policy": {"bucket_ids": ["alpha"]}}
    chunking, new_name, again = {"chunking": {"target": 900}}, {"name": "Judge"}, {"Idempotency-Key": "clerk"}
    with scene.installation.client() as client:
        _change(
            scene,
            client,
            "make an agent",
            lambda client: client.post("/v1/agents", json=agent, headers=again),
            _answers_agent("Clerk", "Judge"),
        )
        _change(
            scene,
            client,
            "rename it",
            lambda client: client.put("/v1/agents/clerk", json=new_name),
            _answers_agent("Judge"),
        )
        _change(scene, client, "chunk", lambda client: client.patch("/v1/buckets/alpha", json=chunking), _chunks(900))
        scene.diary.ask(
            "read the events",
            lambda: list_events(client),
            lambda promised, seen: promised.facts.update(events=_has_events(seen)),
        )


def rebuild(scene: Scene) -> None:
    """An index that is rebuilt, with a file that comes meanwhile."""
    old = scene.prepare("one", "two", "three")
    scene.start()
    diary = scene.diary
    name = scene.installation.operate("team", "ls", "--json").json["teams"][0]["name"]
    with scene.installation.client() as client:
        task_id = diary.ask(
            "rebuild",
            lambda: str(scene.installation.operate("team", "rebuild", name).stdout).strip(),
            begins=lambda promised: promised.ready.clear(),
        )
        added = diary.upload(client, Document("four"))
        diary.ask(
            "wait for its end", lambda: wait_task(client, task_id), lambda promised, _: promised.ready.update(old)
        )
        diary.wait_ready(client, added)


#: By name.
SCENES = {
    "first upload": first_upload,
    "uploads": uploads,
    "removals": removals,
    "keys": keys,
    "settings": settings,
    "rebuild": rebuild,
}


def _make_alpha(client: httpx.Client) -> str:
    return make_bucket(client, "alpha")


def _send_in_parts(scene: Scene, client: httpx.Client, document: Document) -> None:
    """Upload a file in two halves."""
    diary, size = scene.diary, len(document.data)
    path, body = "/v1/buckets/alpha/uploads", {"filename": document.filename, "size_bytes": size}
    session = diary.ask(
        "open a session",
        lambda: client.post(path, json=body, headers={"Idempotency-Key": document.name}).raise_for_status().json(),
        lambda promised, opened: promised.facts.update(parts=_holds(opened["upload_url"], size, 0)),
    )
    url = session["upload_url"]
    for number, end in enumerate((size // 2, size)):
        diary.ask(
            f"put part {number}",
            lambda end=end: put_rest(client, url, document.data, end),  # type: ignore[misc]
            lambda promised, _, end=end: promised.facts.update(parts=_holds(url, size, end)),  # type: ignore[misc]
        )
    source_id = diary.ask(
        "finalize the session",
        lambda: document.send(client),
        lambda promised, source_id: promised.store(source_id, document),
        again=document.send,
    )
    diary.wait_ready(client, source_id)


def _send_batch(scene: Scene, client: httpx.Client, batch: Batched) -> list[str]:
    files = batch.files
    made = scene.diary.repeat(
        f"send {batch.name}",
        batch.send_all,
        client,
        lambda promised, made: promised.sources.update({made[name]: each for name, each in files.items()}),
    )
    return list(made.values())


def _create(scene: Scene, client: httpx.Client, path: str, body: dict[str, Any], key: str) -> None:
    """Create something that another request with its key returns again."""

    def send(client: httpx.Client) -> str:
        return str(client.post(path, json=body, headers={"Idempotency-Key": key}).raise_for_status().json()["id"])

    def is_same(made: str) -> Ask:
        return lambda client: _same(send(client), made)

    scene.diary.repeat(
        f"create {key}", send, client, lambda promised, made: promised.facts.update({key: is_same(made)})
    )


def _change(
    scene: Scene,
    client: httpx.Client,
    what: str,
    request: Callable[[httpx.Client], httpx.Response],
    fact: Ask,
) -> None:
    """Change something; the fact holds from the answer on."""
    scene.diary.repeat(
        what,
        lambda client: request(client).raise_for_status(),
        client,
        lambda promised, _: promised.facts.update({what: fact}),
    )


def _same(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def _holds(url: str, size: int, least: int) -> Ask:
    def check(client: httpx.Client) -> None:
        held = count_held(client, url, size)
        assert held >= least, f"{held} bytes instead of {least} of the session"

    return check


def _has(bucket: str, source_id: str) -> Ask:
    return lambda client: _same(source_id in [source["id"] for source in list_sources(client, bucket)], True)


def _title(source_id: str) -> Ask:
    return lambda client: _same(client.get(f"/v1/sources/{source_id}").json()["title"], "Harbour")


def _lacks_beta(client: httpx.Client) -> None:
    slugs = {each["slug"]: each["status"] for each in client.get("/v1/buckets").json()["buckets"]}
    assert slugs.get("beta") in (None, "deleting"), slugs


def _works(key: str, status: int) -> Ask:
    def check(client: httpx.Client) -> None:
        _same(client.get("/v1/buckets", headers={"Authorization": f"Bearer {key}"}).status_code, status)

    return check


def _answers_agent(*names: str) -> Ask:
    def check(client: httpx.Client) -> None:
        found = client.get("/v1/agents/clerk").json().get("name")
        assert found in names, found

    return check


def _chunks(size: int) -> Ask:
    def check(client: httpx.Client) -> None:
        (bucket,) = [each for each in client.get("/v1/buckets").json()["buckets"] if each["slug"] == "alpha"]
        _same(bucket["chunking"]["target"], size)

    return check


def _has_events(seen: list[dict[str, Any]]) -> Ask:
    return lambda client: _same(list_events(client)[: len(seen)], seen)


def _has_team(scene: Scene) -> Ask:
    def check(_: httpx.Client) -> None:
        names = [team["name"] for team in scene.installation.operate("team", "ls", "--json").json["teams"]]
        assert "second" in names, names

    return check
