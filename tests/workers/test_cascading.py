"""The cascade worker: to the end, around what can't be deleted, and on after a stop."""

from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S

FORCE = {"force": "true"}


def delete(daemon: Daemon, bucket: str = "inbox") -> str:
    """The id of the task that empties the bucket."""
    answer = body_of(daemon.ask("DELETE", f"/v1/buckets/{bucket}", params=FORCE))
    return str(answer["deletion"]["task_id"])


def wait_task(daemon: Daemon, task_id: str) -> dict[str, object]:
    """The task once it has ended."""

    def ended() -> dict[str, object] | None:
        task = body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}"))
        return task if task["finished_at"] else None

    return wait_until(ended, f"the end of {task_id}", PATIENCE_S)


def refuse_deletes_of(daemon: Daemon, source_id: str) -> None:
    """Have the database refuse one source, as a row that something else still needs would be."""
    trigger = (
        f"CREATE TRIGGER held BEFORE DELETE ON sources WHEN OLD.id = '{source_id}'"
        " BEGIN SELECT RAISE(ABORT, 'something needs it'); END"
    )
    daemon.write(lambda connection: connection.execute(trigger).rowcount)


def test_a_bucket_goes_with_everything_that_is_in_it_alone(working: Daemon) -> None:
    lone, shared = working.add_ready(), working.add_ready()
    second = working.make_bucket("second")
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": shared}))
    working.wait_ready(shared)
    task = wait_task(working, delete(working))
    assert (task["status"], task["progress"]) == ("succeeded", {"stage": "delete", "chunks_done": 2, "chunks_total": 2})
    details_of(working.ask("GET", "/v1/buckets/inbox"), "bucket_not_found")
    details_of(working.ask("DELETE", "/v1/buckets/inbox", params=FORCE), "bucket_not_found")
    assert (working.found("quay"), working.members("second")) == ([shared], [shared])
    wait_until(lambda: {path.name for path in working.files.blobs.iterdir()} == {shared}, "the blob goes", PATIENCE_S)
    assert working.provider.get_document(working.team_id, lone) is None
    documents = working.provider.list_documents
    wait_until(
        lambda: [document.bucket_ids for document in documents(working.team_id)] == [(second,)],
        "the index forgets the bucket",
        PATIENCE_S,
    )


def test_the_slug_is_free_again(working: Daemon) -> None:
    working.add_ready()
    wait_task(working, delete(working))
    answer = body_of(working.ask("PUT", "/v1/buckets/inbox"), 201)
    assert (answer["created"], answer["counts"]["total"]) == (True, 0)


def test_what_cannot_be_deleted_brings_the_bucket_back_and_the_same_call_runs_again(working: Daemon) -> None:
    kept, *others = [working.add_ready() for _ in range(4)]
    refuse_deletes_of(working, kept)
    task = wait_task(working, delete(working))
    assert task["status"] == "failed"
    assert task["deletion"] == {"task_id": task["id"], "total": 4, "deleted": 3, "detached": 0, "failed": 1}
    bucket = body_of(working.ask("GET", "/v1/buckets/inbox"))
    assert (bucket["status"], bucket["counts"]["total"]) == ("active", 1)
    assert bucket["lastDeleteError"] == "1 of 4 sources could not be deleted: something needs it"
    working.wait_ready(kept)
    assert (working.found("quay"), working.members()) == ([kept], [kept])
    for source_id in others:
        details_of(working.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")

    working.write(lambda connection: connection.execute("DROP TRIGGER held").rowcount)
    assert wait_task(working, delete(working))["status"] == "succeeded"
    assert (working.count("sources"), working.count("buckets")) == (0, 0)


def test_a_bucket_that_is_back_is_searched_although_the_index_had_forgotten_it(working: Daemon) -> None:
    shared = working.add_ready()
    working.make_bucket("second")
    working.stop()
    task_id = delete(working)
    # While the bucket is being deleted its member joins another: the index is told of that one alone.
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": shared}))
    working.start("syncing")
    working.wait_ready(shared)
    working.stop()
    refuse = "CREATE TRIGGER held BEFORE DELETE ON memberships BEGIN SELECT RAISE(ABORT, 'no'); END"
    working.write(lambda connection: connection.execute(refuse).rowcount)
    working.start()
    assert wait_task(working, task_id)["status"] == "failed"
    working.wait_ready(shared)
    wait_until(lambda: working.found("quay", buckets=["inbox"]) == [shared], "it is found again", PATIENCE_S)


def test_a_stop_in_the_middle_is_made_up_for(daemon: Daemon) -> None:
    for _ in range(450):
        daemon.add_source(b"x")
    task_id = delete(daemon)
    daemon.start("cascading")
    wait_until(lambda: daemon.count("sources") < 450, "the first step", PATIENCE_S)
    daemon.stop()
    daemon.start("cascading")
    task = wait_task(daemon, task_id)
    assert (task["status"], task["attempt"]) == ("succeeded", 1)
    assert (daemon.count("sources"), daemon.count("memberships"), daemon.count("buckets")) == (0, 0, 0)


def test_a_batch_into_the_bucket_ends(working: Daemon) -> None:
    manifest = {"version": 1, "items": [{"client_file_id": "a", "filename": "a.txt", "title": "a"}]}
    files = [{"client_file_id": "a", "filename": "a.txt", "content_type": "text/plain", "size_bytes": 3}]
    body = {"manifest": manifest, "files": files}
    batch = body_of(working.ask("POST", "/v1/buckets/inbox/batches", json=body), 201)
    wait_task(working, delete(working))
    status = body_of(working.ask("GET", f"/v1/knowledge/batches/{batch['batch_id']}", params={"include_items": "true"}))
    assert (status["status"], status["terminal"]) == ("failed", True)
    assert status["items"][0]["error"]["code"] == "bucket_not_found"
