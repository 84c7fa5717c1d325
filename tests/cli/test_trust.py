"""A project's svc.toml is a stranger's until it is trusted, at its place and with its content."""

import json
import os
from pathlib import Path

import pytest

from svc_cli.settings import CliSettings
from tests.cli.terminals import RunSvc, on_terminal
from tests.conftest import MakeInstallation

PROJECT = """\
base_url = "http://127.0.0.1:9"
[sync]
prune = "delete"
max_delete = "100%"
follow_links = true
[[map]]
name = "handbook-docs"
dir = "docs"
bucket = "handbook"
prune = "delete"
"""


@pytest.fixture
def project(svc: RunSvc) -> Path:
    """The path of a project's file that asks for everything, in the working directory."""
    file = Path("svc.toml").absolute()
    file.write_text(PROJECT)
    return file


@pytest.mark.rule("trust.narrows")
def test_untrusted_file_names_no_service_and_only_narrows(project: Path) -> None:
    settings = CliSettings.load(dict(os.environ), Path.cwd())
    assert not settings.is_project_trusted
    found = {each.name: (each.value, each.withheld) for each in settings.all() if each.name.startswith("sync.")}
    assert found["sync.prune"] == ("none", "delete")
    assert found["sync.max_delete"] == ("25%", "100%")
    assert found["sync.follow_links"] == (False, True)


def test_untrusted_file_keeps_what_narrows_the_users_own_settings(project: Path, svc: RunSvc) -> None:
    assert svc("config", "set", "sync.prune", "delete").exit == 0
    project.write_text('[sync]\nprune = "detach"\nfollow_links = false\n')
    settings = CliSettings.load(dict(os.environ), Path.cwd())
    assert settings.find("sync.prune")[1:] == ("detach", str(project), True, None)
    assert settings.get("sync.prune", "delete") == "delete", "a flag is the user's own word"


def test_settings_are_listed_although_the_address_is_untrusted(project: Path, svc: RunSvc) -> None:
    listed = svc("config", "list", "--explain", "--json")
    rows = {row["name"]: row for row in listed.json["settings"]}
    assert listed.exit == 0
    assert rows["base_url"]["value"] is None
    assert "not trusted" in rows["base_url"]["source"]
    assert rows["sync.prune"]["value"] == "none"
    assert rows["sync.prune"]["withheld"] == "delete"
    assert svc("config", "get", "base_url").exit == 2
    assert svc("doctor", "--json").json["checks"]


def test_own_address_counts_whatever_the_project_says(project: Path, svc: RunSvc) -> None:
    assert svc("bucket", "ls", "--base-url", "http://127.0.0.1:8", "--json").exit == 12


@pytest.mark.rule("trust.bucket")
@pytest.mark.parametrize("words", ["upload a.md --replace", "import https://example.com/a --refresh", "watch add docs"])
@pytest.mark.parametrize("given", ["", "-b", "SVC_BUCKET", "config set", "config trust", "SVC_TRUST_PROJECT"])
def test_untrusted_file_does_not_choose_the_bucket_whose_documents_are_changed(
    project: Path, svc: RunSvc, monkeypatch: pytest.MonkeyPatch, words: str, given: str
) -> None:
    project.write_text('bucket = "handbook"\n' if given != "config set" else "")
    Path("a.md").write_text("Words.")
    Path("docs").mkdir()
    if given.startswith("SVC"):
        monkeypatch.setenv(given, "1")
    if given.startswith("config"):
        assert svc(*given.split(), *(["bucket", "handbook"] if given == "config set" else [])).exit == 0
    ended = svc(*words.split(), *(["-b", "handbook"] if given == "-b" else []), "--json")
    if given:
        assert ended.exit == (0 if words.startswith("watch") else 12), "the bucket counts; only the daemon is missing"
    else:
        assert ended.failure == (2, "svc_not_trusted")
        assert [word for word in ("-b", "svc config trust") if word not in ended.json["error"]["hint"]] == []
        if not words.startswith("watch"):
            assert svc(*words.split()[:2]).exit == 12, "nothing is changed without the option"


@pytest.mark.rule("trust.place")
def test_trust_holds_for_one_place_and_one_content(project: Path, svc: RunSvc, tmp_path: Path) -> None:
    trusted = svc("config", "trust", "--json")
    assert trusted.exit == 0
    assert trusted.json["trusted"] is True
    assert trusted.json["values"]["sync.max_delete"] == "100%"
    assert trusted.json["mappings"][0]["name"] == "handbook-docs"
    assert svc("config", "get", "base_url").stdout == "http://127.0.0.1:9\n"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "svc.toml").symlink_to(project)
    for file, folder in ((project, tmp_path / "elsewhere"), (project, tmp_path / "work")):
        settings = CliSettings.load(dict(os.environ), folder)
        assert settings.is_project_trusted == (folder == file.parent), folder
    project.write_text(PROJECT + "# changed\n")
    assert svc("config", "get", "base_url", "--json").failure == (2, "svc_not_trusted")
    assert svc("config", "trust").exit == 0
    assert svc("config", "trust", "--unset").exit == 0
    assert svc("config", "get", "base_url").exit == 2


def test_dry_run_of_trust_stores_nothing_and_the_list_is_private(project: Path, svc: RunSvc, tmp_path: Path) -> None:
    planned = svc("config", "trust", str(project), "--dry-run", "--json")
    assert planned.exit == 0
    assert planned.json["trusted"] is False
    assert not (tmp_path / "config").exists()
    shown = svc("config", "trust").stdout
    assert [each for each in ("delete", "100%", "http://127.0.0.1:9", "handbook-docs") if each not in shown] == []
    (stored,) = (tmp_path / "config").iterdir()
    assert stored.name == "trusted.json"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(stored.read_text())) == [str(project)]


@pytest.mark.parametrize(
    "address",
    [
        "https://good.example@127.0.0.1:9",
        "https://good.example\\n@127.0.0.1:9",
        "http://127.0.0.1:9/ x",
        "ftp://u:secret@h",
    ],
)
def test_address_that_looks_like_another_is_never_trusted(
    project: Path, svc: RunSvc, tmp_path: Path, address: str
) -> None:
    project.write_text(f'base_url = "{address}"\n')
    refused = svc("config", "trust", "--force", "--json")
    assert refused.failure == (2, "svc_usage")
    assert "secret" not in refused.stdout + refused.stderr
    assert list(tmp_path.rglob("trusted.json")) == []


@pytest.mark.parametrize("content", [".".join(["a"] * 50_000) + " = 1\n", "#" * 1_000_000], ids=["dotted", "large"])
def test_file_that_would_take_long_to_read_is_refused_at_once(project: Path, svc: RunSvc, content: str) -> None:
    project.write_text(content)
    assert svc("config", "list", "--json").failure == (2, "svc_usage")


def test_trust_is_refused_for_other_files(svc: RunSvc) -> None:
    Path("other.toml").write_text("")
    assert svc("config", "trust", "other.toml").exit == 2
    assert svc("config", "trust", "--json").failure == (5, "svc_path_not_found")


def test_damaged_list_of_trusted_files_is_named_in_the_error(project: Path, svc: RunSvc, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "trusted.json").write_text("{")
    ended = svc("bucket", "ls", "--json")
    assert ended.exit == 2
    assert "trusted.json can't be read" in ended.json["error"]["message"]


@pytest.mark.rule("trust.place")
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
def test_trust_shows_the_values_and_asks_on_a_terminal(
    make_installation: MakeInstallation, answer: str, code: int
) -> None:
    installation = make_installation()
    installation.root.mkdir(exist_ok=True)
    (installation.root / "svc.toml").write_text(PROJECT)
    ended, shown = on_terminal(installation, "config", "trust", typed=f"{answer}\n")
    assert ended == code
    assert shown.index("100%") < shown.index("trust this file? [y/N]")
    assert (installation.root / "config" / "trusted.json").exists() == (answer == "y")
