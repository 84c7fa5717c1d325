"""What was asked for and has no effect is said, and is no success; each spelling of a path means what it says."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import counts, items, write
from tests.cli.terminals import needs_git


@pytest.fixture
def project(shared_installation: Installation, tmp_path: Path) -> Path:
    """A folder with documents and drafts, in a folder of its own."""
    for name in ("a.md", "drafts/private.md", "deep/drafts/b.md", "deep/keep.md"):
        write(tmp_path, f"docs/{name}", f"Words of {tmp_path.name} {name}.")
    return tmp_path


def sent(installation: Installation, bucket: str) -> list[str]:
    with installation.client() as client:
        return sorted(source["title"] for source in list_sources(client, bucket))


@pytest.mark.parametrize(
    ("where", "pattern"),
    [
        (".", "./docs/drafts/"),
        (".", "docs/drafts"),
        (".", "docs/./drafts//"),
        (".", "./drafts/"),
        ("docs", "./drafts/"),
        ("docs", "../docs/drafts/"),
        ("docs/deep", "../drafts/"),
        (".", "{}/docs/drafts/"),
        (".", "{}/docs/drafts/*.md"),
        (".", "/drafts/"),
    ],
)
def test_each_spelling_of_a_folder_excludes_it(
    shared_installation: Installation, project: Path, where: str, pattern: str
) -> None:
    pattern, bucket = pattern.replace("{}", str(project)), project.name.replace("_", "-")
    folder = os.path.relpath(project / "docs", project / where)
    for verb in ("diff", "sync"):
        words = (verb, folder, "-b", bucket, "--exclude", pattern, "--json")
        ended = shared_installation.svc(*words, cwd=project / where)
        assert (ended.exit, ended.json["notes"][1:]) == (10 if verb == "diff" else 0, []), ended.stdout
    assert sent(shared_installation, bucket) == ["a.md", "deep/drafts/b.md", "deep/keep.md"]


@pytest.mark.parametrize(
    ("flag", "pattern"),
    [
        *(("--exclude", pattern) for pattern in ("nothing/", "craft?", "{a,b}.md", "../elsewhere/", "[a", ".")),
        ("--include", "nothing/"),
    ],
)
def test_pattern_that_matches_nothing_is_a_note_and_fails_if_strict(
    shared_installation: Installation, project: Path, flag: str, pattern: str
) -> None:
    words = ("sync", "docs", "-b", project.name.replace("_", "-"), flag, pattern, "--include", "*.md", "--json")
    ended = shared_installation.svc(*words, cwd=project)
    assert (ended.exit, counts(ended)["created"]) == (0, 4), ended.stdout
    assert f"the pattern {pattern} matches nothing in the folder." in ended.json["notes"]
    strict = shared_installation.svc(*words, "--strict", cwd=project)
    assert strict.failure == (3, "svc_no_effect")


def test_pattern_of_what_another_pattern_leaves_out_has_its_effect(
    shared_installation: Installation, project: Path
) -> None:
    words = ("--exclude", "drafts", "--exclude", "drafts/private.md", "--exclude", "*.md", "--exclude", "!a.md")
    ended = shared_installation.svc("sync", "docs", "-b", "several", *words, "--json", cwd=project)
    assert [note for note in ended.json["notes"] if "pattern" in note] == []


@needs_git
@pytest.mark.parametrize("verb", ["sync", "upload", "diff"])
def test_folder_that_an_outer_rule_ignores_fails_and_makes_no_bucket(
    shared_installation: Installation, project: Path, verb: str
) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    (project / ".gitignore").write_text("*.log\n/docs/\n")
    for folder in ("docs", "docs/deep"):
        ended = shared_installation.svc(verb, folder, "-b", f"ignored-{verb}", "--json", cwd=project)
        assert ended.failure == (3, "svc_nothing_to_send")
        assert f"`/docs/` in {project / '.gitignore'}" in ended.json["error"]["message"]
    assert shared_installation.svc("bucket", "show", f"ignored-{verb}", "--json").exit == 5
    checked = shared_installation.svc("ignore", "check", "--root", "docs", "docs/a.md", "--json", cwd=project)
    assert (checked.json["items"][0]["pattern"], checked.json["items"][0]["is_ignored"]) == ("/docs/", True)
    (project / ".svcignore").write_text("!/docs/\n")
    taken = shared_installation.svc(verb, "docs", "-b", f"ignored-{verb}", "--json", cwd=project)
    assert taken.exit == (10 if verb == "diff" else 0), taken.stdout


@pytest.mark.parametrize("verb", ["sync", "upload"])
def test_folder_of_which_nothing_is_sent_fails_beside_others_that_are(
    shared_installation: Installation, project: Path, verb: str
) -> None:
    (project / "hollow").mkdir()
    write(project, "pictures/p.png", b"\x89PNG\0")
    write(project, "pictures/.hidden.md", "Hidden.")
    for name in ("hollow", "pictures"):
        ended = shared_installation.svc(verb, name, "-b", f"hollow-{verb}", "--json", cwd=project)
        assert ended.failure == (3, "svc_nothing_to_send"), ended.stdout
    if verb == "upload":
        both = shared_installation.svc("upload", "docs", "hollow", "-b", "hollow-upload", "--json", cwd=project)
        assert (both.exit, counts(both)["created"], items(both)["hollow/"]["action"]) == (3, 4, "failed")
        for _ in range(2):  # what is in the bucket already is no failure
            assert shared_installation.svc("upload", "docs", "-b", "hollow-upload", cwd=project).exit == 0


def test_tag_that_an_unchanged_file_does_not_get_is_said(shared_installation: Installation, project: Path) -> None:
    words = ("upload", "docs/a.md", "-b", "tags", "--json")
    assert shared_installation.svc(*words, "--tag", "x", "--meta", "k=v", cwd=project).exit == 0
    same = shared_installation.svc(*words, "--tag", "x", "--meta", "k=v", cwd=project)
    other = shared_installation.svc(*words, "--tag", "y", cwd=project)
    assert [items(each)["docs/a.md"]["warnings"] for each in (same, other)] == [
        [],
        ["its tags and metadata stay as they are, because nothing is sent."],
    ]


#: Files, and then folders with a file each.
LEFT_BEHIND = [
    *("~$plan.docx", "plan.md~", "#plan.md#", "plan.md.swp", "plan.md___jb_tmp___", "plan.md.part"),
    *("plan.crdownload", "Thumbs.db", "DESKTOP.INI", "plan.md.PART", "~WRL0001.tmp", "plan.dwl2", "plan.bak"),
    *("book.xlk", "x/plan.kate-swp", "__MACOSX/plan.md", "@eaDir/plan.md", "film.download/info.md"),
]


@pytest.mark.parametrize("verb", ["sync", "upload"])
def test_leftovers_of_programs_are_skipped_unless_an_exception_takes_them(
    shared_installation: Installation, tmp_path: Path, verb: str
) -> None:
    kept = ("C#.md", "parts.md", "~.md", "#one.md", "swp", "tmp.md", "bak/x.md")
    for name in (*LEFT_BEHIND, *kept):
        write(tmp_path, f"docs/{name}", f"Words of {name}.")
    words = (verb, "docs", "-b", f"left-{verb}", "--json")
    ended = shared_installation.svc(*words, cwd=tmp_path)
    assert (ended.exit, counts(ended)["created"]) == (0, len(kept)), ended.stdout
    left = {path.removeprefix("docs/"): each["reason_code"] for path, each in items(ended).items() if each["reason"]}
    folders = {name.partition("/")[0] + "/" for name in LEFT_BEHIND[-3:]}
    assert left == dict.fromkeys({*LEFT_BEHIND[:-3], *folders}, "program_leftover")
    write(tmp_path, "docs/.svcignore", "!*.part\n")
    assert counts(shared_installation.svc(*words, cwd=tmp_path))["created"] == 1
    named = shared_installation.svc("upload", str(tmp_path / "docs" / "plan.md~"), "-b", f"left-{verb}", "--json")
    assert counts(named)["created"] == 1, "a file that the user names is sent"
