"""Commands in a folder with mappings mean these: sync, diff, ignore and watch, as the how-to types them."""

from pathlib import Path

import pytest

from tests.acceptance.installations import Finished, Installation
from tests.cli.terminals import write

#: As in docs/how-to/folders.md.
SETTINGS = """
bucket = "{bucket}"

[sync]
prune = "detach"

[[map]]
name = "notes"
dir = "notes"
exclude = ["drafts/"]
"""


@pytest.fixture
def project(tmp_path: Path, bucket: str) -> Path:
    write(tmp_path, "notes/a.md", "notes/drafts/b.md", "notes/c.tmp")
    write(tmp_path, "svc.toml", data=SETTINGS.format(bucket=bucket).encode())
    return tmp_path


def _paths(ended: Finished) -> dict[str, str]:
    mappings = ended.json.get("mappings", [ended.json])
    return {item["path"]: item["action"] for each in mappings for item in each["items"]}


def test_sync_and_diff_without_a_folder_mean_the_mappings_that_are_there(
    shared_installation: Installation, project: Path
) -> None:
    svc = shared_installation.svc
    foreseen = svc("diff", "--json", cwd=project)
    assert (foreseen.exit, _paths(foreseen)["a.md"]) == (10, "created")
    done = svc("sync", "--json", cwd=project)
    assert done.exit == 0, done.stdout
    assert [each["mapping"] for each in done.json["mappings"]] == ["notes"]
    assert _paths(svc("sync", "--json", cwd=project / "notes/drafts"))["drafts/"] == "skipped"
    alone = svc("sync", "--json", cwd=project / "notes")
    assert (alone.exit, alone.json["mapping"]) == (0, "notes")


def test_ignore_knows_the_excludes_of_the_mapping_from_wherever_it_is_called(
    shared_installation: Installation, project: Path
) -> None:
    svc, draft = shared_installation.svc, str(project / "notes/drafts/b.md")
    for folder, path in ((project, "notes/drafts/b.md"), (project / "notes", "drafts/b.md"), (project, draft)):
        (item,) = svc("ignore", "check", path, "--json", cwd=folder).json["items"]
        assert (item["is_ignored"], item["pattern"]) == (True, "drafts/"), (folder, path)
    for folder, words, left in (
        (project, (), "notes/drafts/"),
        (project, ("notes",), "drafts/"),
        (project / "notes", (), "drafts/"),
    ):
        listed = svc("ignore", "list", *words, "--json", cwd=folder).json
        assert {"path": left, "reason": "ignored", "reason_code": "ignored"} in listed["items"], (folder, words)
        assert listed["taken"] == 1


def test_watch_add_of_a_folder_of_the_file_takes_its_settings_and_ls_shows_what_is_in_effect(
    shared_installation: Installation, project: Path, bucket: str
) -> None:
    svc = shared_installation.svc
    assert svc("config", "trust", "--force", cwd=project).exit == 0
    added = svc("watch", "add", str(project / "notes"), "-b", bucket, "--json", cwd=project)
    assert (added.exit, added.json["exclude"], added.json["mapping"]) == (0, ["drafts/"], "notes")
    here = svc("watch", "ls", "--json", cwd=project).json["mappings"]
    assert [(each["prune"], each["exclude"], each["source"]) for each in here if each["bucket"] == bucket] == [
        ("detach", ["drafts/"], str(project / "svc.toml"))
    ]
    (elsewhere,) = [each for each in svc("watch", "ls", "--json").json["mappings"] if each["bucket"] == bucket]
    assert (elsewhere["prune"], elsewhere["exclude"], elsewhere["max_delete"]) == ("none", ["drafts/"], "25%")
    assert svc("watch", "rm", "notes").exit == 0


def test_what_is_left_out_now_but_in_the_bucket_goes_with_one_flag(
    shared_installation: Installation, tmp_path: Path, bucket: str
) -> None:
    svc = shared_installation.svc
    write(tmp_path, "notes/a.md", data=b"one")
    write(tmp_path, "notes/b.md", data=b"two")
    words = ("sync", "notes", "-b", bucket, "--json")
    assert svc(*words, cwd=tmp_path).exit == 0
    left = svc(*words, "--exclude", "b.md", "--prune", "detach", cwd=tmp_path).json
    assert any("--prune-left-out" in note for note in left["notes"]), left["notes"]
    planned = svc(*words, "--exclude", "b.md", "--prune-left-out", "--dry-run", cwd=tmp_path)
    assert _paths(planned) == {"b.md": "detached"}
    done = svc(*words, "--exclude", "b.md", "--prune-left-out", cwd=tmp_path)
    assert (done.exit, _paths(done)) == (0, {"b.md": "detached"})
    titles = [each["title"] for each in svc("source", "ls", "-b", bucket, "--json").json["sources"]]
    assert titles == ["a.md"]
    assert (tmp_path / "notes/b.md").exists()
