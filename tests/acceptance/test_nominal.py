"""The main job: a file goes in, becomes ready, is found, and is gone when it is deleted."""

from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation
from tests.corpus import Outcome, make_corpus

NOTES = b"# Ferries\n\nThe cobalt ferry of Hexley leaves at seven.\n"
OTHERS = b"# Orchards\n\nThe russet orchard of Garrowby is closed on Sundays.\n"


def test_a_file_goes_in_by_svc_and_is_found(installation: Installation) -> None:
    (installation.root / "notes.md").write_bytes(NOTES)
    (installation.root / "others.md").write_bytes(OTHERS)

    uploaded = installation.svc("upload", "notes.md", "others.md", "-b", "handbook", "--json")
    assert (uploaded.exit, uploaded.stderr) == (0, "")
    items = {item["path"]: item for item in uploaded.json["items"]}
    assert items["notes.md"]["ready"] is True

    found = installation.svc("search", "cobalt ferry", "-b", "handbook", "--json")
    assert found.exit == 0
    best = found.json["data"][0]
    assert (best["source_id"], best["filename"]) == (items["notes.md"]["source_id"], "notes.md")
    assert best["location"]["line_start"] is not None

    deleted = installation.svc("source", "rm", best["source_id"], "--force", "--json")
    assert deleted.exit == 0
    after = installation.svc("search", "cobalt ferry", "-b", "handbook", "--json").json["data"]
    assert best["source_id"] not in [hit["source_id"] for hit in after]


def test_the_first_command_needs_no_daemon_and_no_configuration(installation: Installation) -> None:
    installation.stop()
    (installation.root / "notes.md").write_bytes(NOTES)
    uploaded = installation.svc("upload", "notes.md", "-b", "handbook", "--json")
    assert (uploaded.exit, uploaded.json["items"][0]["ready"]) == (0, True)
    status = installation.svc("daemon", "status", "--json")
    assert status.json["base_url"] == installation.base_url


def test_what_people_read_names_the_file_and_its_line(installation: Installation) -> None:
    (installation.root / "notes.md").write_bytes(NOTES)
    assert installation.svc("upload", "notes.md", "-b", "handbook").exit == 0
    found = installation.svc("search", "cobalt ferry", "-b", "handbook")
    assert found.exit == 0
    assert "notes.md" in found.stdout
    assert "cobalt ferry of Hexley" in found.stdout
    assert "\x1b" not in found.stdout + found.stderr


def test_the_same_flow_over_http(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "handbook")
        accepted = upload(client, "handbook", "notes.md", NOTES, title="Ferries", tags="sea, north")
        assert accepted.status_code == 201
        source = accepted.json()
        assert (source["status"], source["ready"], source["tags"]) == ("queued", False, ["sea", "north"])
        assert source["request_id"] == accepted.headers["X-Request-Id"]
        upload(client, "handbook", "others.md", OTHERS).raise_for_status()

        ended = wait_ended(client, source["id"])
        assert (ended["ready"], ended["bucket_sync_status"]) == (True, "active")
        assert client.get(f"/v1/sources/{source['id']}/content").content == NOTES
        assert search(client, "cobalt ferry", "handbook")[0]["source_id"] == source["id"]

        wait_ended(client, next(s["id"] for s in list_sources(client, "handbook") if s["id"] != source["id"]))
        client.delete(f"/v1/sources/{source['id']}").raise_for_status()
        assert source["id"] not in [hit["source_id"] for hit in search(client, "cobalt ferry", "handbook")]
        gone = client.get(f"/v1/sources/{source['id']}")
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "source_not_found")


def test_a_phrase_inside_a_pdf_is_found_with_its_page(installation: Installation, tmp_path: Path) -> None:
    documents = [made for made in make_corpus(tmp_path / "folder", 20) if made.outcome is Outcome.READY]
    pdfs = [made for made in documents if made.page]
    assert len(pdfs) == 2
    assert (
        installation.svc("upload", *(str(tmp_path / "folder" / made.path) for made in pdfs), "-b", "papers").exit == 0
    )
    with installation.client() as client:
        for made in pdfs:
            best = search(client, made.phrase, "papers")[0]
            assert (best["filename"], best["location"]["page"]) == (Path(made.path).name, made.page)
            shown = installation.svc("search", made.phrase, "-b", "papers").stdout
            assert Path(made.path).name in shown
            client.delete(f"/v1/sources/{best['source_id']}").raise_for_status()
            left = client.post("/v1/search", json={"query": made.phrase, "buckets": ["papers"]}).json()
            assert best["source_id"] not in [hit["source_id"] for hit in left.get("data", [])]


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "col:val*", "ferry) OR (1", "' --"])
def test_a_query_is_words_and_never_syntax(shared_installation: Installation, query: str) -> None:
    with shared_installation.client() as client:
        make_bucket(client, "words")
        source = upload(client, "words", "notes.md", NOTES, key="words").json()
        wait_ended(client, source["id"])
        answer = client.post("/v1/search", json={"query": query, "buckets": ["words"]})
        assert answer.status_code == 200
        assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
