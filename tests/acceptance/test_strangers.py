"""A stranger's repository narrows what is sent; it removes and overwrites nothing, and reads nothing outside of it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import sync_folders
from tests.acceptance.installations import IMPATIENT, Finished, Installation
from tests.acceptance.sync_folders import BUCKET, counts, fill, list_held, withheld, write
from tests.acceptance.watches import watching
from tests.conftest import UNLIMITED, MakeInstallation

NAME = "handbook-docs"
HOSTILE = (
    f'[sync]\nmax_delete = "100%"\n[[map]]\nname = "{NAME}"\ndir = "docs"\nbucket = "{BUCKET}"\nprune = "delete"\n'
)
#: Without a name, the mapping has that of its folder.
UNNAMED = f'[[map]]\ndir = "docs"\nbucket = "{BUCKET}"\nprune = "delete"\n'


@pytest.fixture
def owned(installation: Installation) -> list[dict[str, Any]]:
    """The 30 sources of the user's own mapping `handbook-docs`, which was synced from another folder."""
    fill(installation.root / "own" / "docs", 30)
    assert run(installation, "docs", "-b", BUCKET, "--name", NAME, cwd="own").exit == 0
    return held(installation)


def run(installation: Installation, *words: str, cwd: str = "clone", verb: str = "sync") -> Finished:
    return installation.svc(verb, *words, "--json", cwd=installation.root / cwd)


def held(installation: Installation) -> list[dict[str, Any]]:
    """Return the sources of the bucket that were not made in the clone."""
    found = [{key: each[key] for key in ("id", "title", "sha256")} for each in list_held(installation)]
    return sorted((each for each in found if not each["title"].startswith("their")), key=lambda each: str(each["id"]))


def clone(installation: Installation, settings: str = HOSTILE, folder: str = "clone") -> Path:
    """Make a stranger's repository with one file, and return its folder of documents."""
    write(installation.root / folder, "svc.toml", settings)
    write(installation.root / folder, ".git/HEAD", "ref: refs/heads/main\n")
    write(installation.root / folder / "docs", "theirs.md", "Words of a stranger.")
    return installation.root / folder / "docs"


@pytest.mark.rule("trust.narrows")
@pytest.mark.parametrize("words", [["docs"], ["--all"], ["docs", "--verify-remote"]])
def test_prune_of_an_untrusted_file_removes_nothing_and_is_reported(
    installation: Installation, owned: list[dict[str, Any]], words: Sequence[str]
) -> None:
    clone(installation)
    for verb, code in (("diff", 10), ("sync", 0), ("sync", 0)):
        ended = run(installation, *words, verb=verb)
        report = ended.json["mappings"][0] if "--all" in words else ended.json
        found = {each["code"]: each for each in report["withheld"]}
        assert (ended.exit, set(found)) == (code, {"not_trusted", "other_folder"}), verb
        assert found["not_trusted"]["because"] == ["prune = delete", "max_delete = 100%"]
        assert "svc config trust" in found["not_trusted"]["message"]
    strict = run(installation, *words, "--strict")
    assert (strict.exit, held(installation)) == (3, owned)
    assert "svc config trust" in installation.svc("sync", *words, cwd=installation.root / "clone").stdout


@pytest.mark.rule("trust.mapping")
def test_name_in_an_untrusted_file_claims_nothing_even_with_prune_on_the_command_line(
    installation: Installation, owned: list[dict[str, Any]]
) -> None:
    clone(installation)
    for words in (["--all"], ["docs"]):
        ended = run(installation, *words, "--prune", "delete", "--max-delete", "100%")
        assert ended.exit == 6
        report = ended.json["mappings"][0] if "--all" in words else ended.json
        assert f"--name {NAME}" in report["items"][-1]["error"]["hint"]
    assert held(installation) == owned


@pytest.mark.rule("trust.mapping")
@pytest.mark.parametrize("settings", [HOSTILE, f'bucket = "{BUCKET}"\n', UNNAMED], ids=["named", "bucket", "unnamed"])
@pytest.mark.parametrize("path", ["000/01.md", "moved.md"], ids=["update", "move"])
def test_document_of_another_folder_is_a_conflict_and_stays(
    installation: Installation, owned: list[dict[str, Any]], settings: str, path: str
) -> None:
    own = installation.root / "own" / "docs"
    if settings is not HOSTILE:  # the default name of the stranger's folder is the one of the user's own
        assert run(installation, "docs", "-b", BUCKET, "--name", "docs", cwd="own").exit == 0
    before = held(installation)
    docs = clone(installation, settings)
    write(docs, path, "Other words." if path == "000/01.md" else (own / "000" / "01.md").read_bytes())
    for words in (["--dry-run"], [], ["--verify-remote"]):
        ended = run(installation, "docs", *words)
        item = sync_folders.items(ended)[path]
        assert (ended.failure, item["action"]) == ((6, "svc_mapping_conflict"), "conflict"), words
        assert "--name" in item["error"]["hint"] and "--name" in ended.json["error"]["hint"]
        assert held(installation) == before
    assert "their" in "".join(sync_folders.titles(installation)), "what is in nobody's way is sent"


@pytest.mark.rule("trust.mapping")
def test_copy_of_a_document_is_adopted_unchanged_and_gives_no_right_to_change_it(
    installation: Installation, owned: list[dict[str, Any]]
) -> None:
    docs = clone(installation)
    copy = write(docs, "000/01.md", (installation.root / "own" / "docs" / "000" / "01.md").read_bytes())
    for words in ([], ["--checksum"], ["--verify-remote"]):
        assert counts(run(installation, "docs", *words))["unchanged"] >= 1
    copy.write_text("Other words.")
    assert run(installation, "docs").failure == (6, "svc_mapping_conflict")
    copy.unlink()
    assert run(installation, "docs", "--prune", "delete").exit == 6
    assert held(installation) == owned


@pytest.mark.rule("trust.mapping")
def test_files_that_were_sent_from_an_untrusted_folder_are_updated_moved_and_pruned_on_request(
    installation: Installation,
) -> None:
    docs = clone(installation)
    fill(docs, 12)
    assert counts(run(installation, "docs")) == {"created": 13}
    write(docs, "theirs.md", "Other words of a stranger.")
    (docs / "000" / "01.md").rename(docs / "moved.md")
    (docs / "000" / "02.md").unlink()
    ended = run(installation, "docs")
    assert (ended.exit, counts(ended)) == (0, {"updated": 1, "moved": 1, "unchanged": 10, "gone": 1})
    assert [each[:2] for each in withheld(ended)] == [("not_trusted", 1)]
    assert counts(run(installation, "docs", "--prune", "detach")) == {"detached": 1, "unchanged": 12}


@pytest.mark.rule("trust.build")
@pytest.mark.parametrize("in_build", [False, True])
def test_trusted_file_prunes_in_the_folder_and_in_a_fresh_clone(
    make_installation: MakeInstallation, in_build: bool
) -> None:
    installation = make_installation(**UNLIMITED, **({"SVC_TRUST_PROJECT": "1"} if in_build else {}))
    installation.start()
    docs = fill(clone(installation), 8)
    if not in_build:
        assert installation.svc("config", "trust", cwd=docs.parent).exit == 0
    first = run(installation, "--all").json["mappings"][0]
    assert (first["counts"]["created"], first["withheld"]) == (9, [])
    (docs / "000" / "01.md").unlink()
    assert run(installation, "--all").json["mappings"][0]["counts"]["deleted"] == 1
    sync_folders.forget(installation)
    fresh = fill(clone(installation, folder="fresh"), 6)
    (fresh / "000" / "01.md").unlink()
    write(fresh, "000/02.md", "Other words.")
    if not in_build:
        assert installation.svc("config", "trust", cwd=fresh.parent).exit == 0
    ended = run(installation, "--all", cwd="fresh").json["mappings"][0]
    assert (ended["exit_code"], ended["counts"]["updated"], ended["counts"]["deleted"]) == (0, 1, 2)
    assert sorted(sync_folders.titles(installation)) == [
        "000/00.md",
        *(f"000/0{n}.md" for n in range(2, 6)),
        "theirs.md",
    ]


@pytest.mark.rule("trust.folder")
@pytest.mark.parametrize("link", [False, True], ids=["path", "link"])
def test_folder_outside_of_an_untrusted_files_own_is_refused(installation: Installation, link: bool) -> None:
    private = installation.root / "private"
    write(private, "secret.md", "The secret.")
    clone(installation, f'[[map]]\nname = "x"\ndir = "{"linked" if link else "../private"}"\nbucket = "{BUCKET}"\n')
    if link:
        (installation.root / "clone" / "linked").symlink_to(private)
    for verb, words in {"sync": ["--all"], "diff": ["--name", "x"], "watch": ["run"]}.items():
        ended = run(installation, *words, verb=verb)
        assert (ended.failure, "svc config trust" in ended.json["error"]["hint"]) == ((2, "svc_not_trusted"), True)
    with installation.client() as client:
        assert client.get("/v1/buckets").json()["buckets"] == []
    assert run(installation, "../private", "--dry-run").exit == 0, "the user named the folder"
    path = "linked" if link else "../private"
    assert run(installation, path, "--dry-run").exit == (2 if link else 0), "a link may be the stranger's"
    installation.environ["SVC_TRUST_PROJECT"] = "1"
    for words in (["--all"], [path]):
        assert run(installation, *words, "--dry-run").exit == 0
    del installation.environ["SVC_TRUST_PROJECT"]
    assert installation.svc("config", "trust", cwd=installation.root / "clone").exit == 0
    assert run(installation, "--all").exit == 0


#: What a user types in a stranger's clone, in which `linked`, `real/sub` and `one.md` lead out of it.
NAMED_LINKS = [
    *(
        "sync linked",
        "sync linked/deep",
        "sync linked/../private",
        "sync real/sub/deep",
        "diff linked",
        "watch add linked",
    ),
    *("watch run linked", "watch run real/sub/", "upload linked", "upload ./linked/.", "upload linked/secret.md"),
    *("upload real/sub/deep/s.md", "upload one.md", "upload linked/*.md", "upload own.md one.md", "sync around"),
    "bucket import linked/secret.md",
]


@pytest.mark.rule("trust.link")
@pytest.mark.parametrize(
    ("typed", "mark"),
    # What makes a folder a repository is asked in one place.
    [*((typed, ".git/HEAD") for typed in NAMED_LINKS), ("sync linked", "svc.toml")],
)
def test_link_out_of_a_repository_is_not_followed_where_the_user_names_it(
    shared_installation: Installation, tmp_path: Path, typed: str, mark: str
) -> None:
    write(tmp_path / "private", "secret.md", "The secret.")
    write(tmp_path / "private", "deep/s.md", "Another secret.")
    stranger = tmp_path / "stranger"
    write(stranger, mark, "")
    write(stranger, "real/own.md", "Own words.")
    write(stranger, "own.md", "Own words.")
    links = {"linked": "../private", "real/sub": str(tmp_path / "private"), "one.md": "real/sub/secret.md"}
    for name, target in (links | {"around": "real/sub/deep"}).items():
        (stranger / name).symlink_to(target)
    ended = shared_installation.svc(*typed.split(), "-b", "linked", "--json", cwd=stranger)
    assert ended.failure == (2, "svc_not_trusted"), ended.stdout
    assert str(tmp_path / "private") in ended.json["error"]["hint"], "the hint has the real path"
    with shared_installation.client() as client:
        assert client.get("/v1/buckets").json()["buckets"] == []
    assert shared_installation.svc("watch", "ls", "--json").json["mappings"] == []


@pytest.mark.rule("trust.link")
@pytest.mark.parametrize(
    ("typed", "cwd"),
    [
        *(("sync", cwd) for cwd in ("clone", "home/clone", "home/clone/inside", "plain")),
        *((typed, "home/clone") for typed in ("upload", "upload a.md", "diff")),
    ],
)
def test_links_above_and_inside_of_a_repository_or_without_one_are_followed(
    shared_installation: Installation, tmp_path: Path, typed: str, cwd: str
) -> None:
    write(tmp_path / "clone", ".git/HEAD", "")
    write(tmp_path / "clone", "docs/a.md", "Words.")
    write(tmp_path / "elsewhere", "a.md", "Words.")
    for folder in ("clone/inside", "plain"):
        (tmp_path / folder).mkdir()
    (tmp_path / "home").symlink_to(".")
    for name, target in {"clone": "docs", "clone/inside": "../docs", "plain": "../elsewhere"}.items():
        (tmp_path / name / "private").symlink_to(target)
    verb, _, file = typed.partition(" ")
    words = ["-b", "followed", "--json", *([] if verb == "diff" else ["--dry-run"])]
    for given in (Path("private", file), tmp_path / cwd / "private" / file):
        ended = shared_installation.svc(verb, str(given), *words, cwd=tmp_path / cwd)
        assert (ended.exit, len(ended.json["items"])) == (10 if verb == "diff" else 0, 1), ended.stdout


@pytest.mark.rule("trust.folder")
def test_link_of_a_trusted_file_that_leads_elsewhere_later_is_refused(installation: Installation) -> None:
    for name in ("one", "two"):
        write(installation.root / name, "a.md", f"Words of {name}.")
    clone(installation, f'[[map]]\ndir = "linked"\nbucket = "{BUCKET}"\n')
    linked = installation.root / "clone" / "linked"
    linked.symlink_to(installation.root / "one")
    assert installation.svc("config", "trust", cwd=linked.parent).exit == 0
    assert run(installation, "--all").exit == 0
    linked.unlink()
    linked.symlink_to(installation.root / "two")
    assert run(installation, "--all").failure == (2, "svc_not_trusted")


@pytest.mark.rule("trust.folder")
def test_watcher_stops_when_a_link_of_an_untrusted_file_leads_out_of_its_folder(installation: Installation) -> None:
    write(installation.root / "private", "secret.md", "The secret nightjar.")
    docs = clone(installation, f'[[map]]\nname = "x"\ndir = "current"\nbucket = "{BUCKET}"\n')
    write(docs.with_name("next"), "new.md", "New words of a stranger.")
    current = docs.with_name("current")
    current.symlink_to("docs")

    def lead_to(target: str) -> None:
        current.with_name("draft").symlink_to(target)
        current.with_name("draft").replace(current)

    watch_in_clone = [sys.executable, "-m", IMPATIENT, "watch", "run", "--ndjson"]
    program = ["env", "-C", str(docs.parent), *watch_in_clone]
    with watching(installation, program=program) as watch:
        lead_to("next")
        watch.wait_for_item("created", "new.md")
        lead_to("../private")
        watch.wait_for_state("troubled")
        flushed = installation.svc("watch", "flush", "x", "--json", cwd=docs.parent)
        (state,) = flushed.json["mappings"]
        assert (flushed.exit, state["error"]["code"]) == (3, "svc_not_trusted"), "a flush trusts no file"
        assert sync_folders.titles(installation) == ["new.md", "theirs.md"]
        lead_to("docs")
        assert installation.svc("watch", "flush", "x", cwd=docs.parent).exit == 0


@pytest.mark.rule("trust.default-name")
def test_folder_of_the_same_default_name_does_not_overwrite_another_folders_document(
    installation: Installation,
) -> None:
    for folder in ("a", "b"):
        write(installation.root / folder / "docs", "readme.md", f"Words of {folder}.")
    assert run(installation, "docs", "-b", BUCKET, cwd="a").exit == 0
    before = held(installation)
    assert run(installation, "docs", "-b", BUCKET, cwd="b").failure == (6, "svc_mapping_conflict")
    assert held(installation) == before
    write(installation.root / "a" / "docs", "readme.md", "New words of a.")
    assert counts(run(installation, "docs", "-b", BUCKET, cwd="a")) == {"updated": 1}
    assert counts(run(installation, "docs", "-b", BUCKET, "--name", "docs", cwd="b")) == {"updated": 1}
