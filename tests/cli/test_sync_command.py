"""The arguments of `svc sync` and `svc watch run`, checked before any request, and the display of a watcher."""

import time
from pathlib import Path

import pytest

from svc_cli.commands.daily.watch_screens import Display, render_states
from svc_cli.sync.mappings import Mapping
from svc_cli.transfer.reports import ReportItem
from tests.cli.terminals import MakeConsole, RunSvc

MAPS = """\
bucket = "handbook"
map = [{ name = "docs", dir = "docs" }, { name = "public", dir = "docs", bucket = "public" }]
"""


@pytest.fixture
def project(svc: RunSvc) -> RunSvc:
    """`svc` in a folder with two mappings of one folder, and another folder beside it."""
    Path("svc.toml").write_text(MAPS)
    for name in ("docs/deep", "other"):
        Path(name).mkdir(parents=True)
    return svc


@pytest.mark.parametrize(
    ("words", "message"),
    {
        "docs": "Several mappings match: docs into handbook, public into public.",
        "other --name docs": "The mapping 'docs' is of ",
        "docs/deep": "the mappings 'docs' and 'deep' into handbook overlap",
        "docs --name third": "the mappings 'docs' and 'third' into handbook overlap",
    }.items(),
)
def test_ambiguous_or_overlapping_mappings_are_refused(words: str, message: str, project: RunSvc) -> None:
    for verb in ("sync", "diff", "watch run"):
        ended = project(*verb.split(), *words.split(), "--json")
        error = ended.json["error"]
        assert ended.failure == (2, "svc_usage"), (verb, words)
        assert bool(error["hint"]), (verb, words)
        assert message in error["message"], (verb, words)


def test_folder_with_the_default_name_of_another_mapping_is_told_from_it(project: RunSvc) -> None:
    Path("svc.toml").write_text('[[map]]\nname = "docs"\ndir = "other"\nbucket = "handbook"\n')
    for verb in ("sync", "diff", "watch run", "watch add"):
        error = project(*verb.split(), "docs", "-b", "handbook", "--json").json["error"]
        said = f"named 'docs': that of {Path('other').absolute()}, and that of {Path('docs').absolute()}."
        assert said in error["message"], verb
        assert "--name" in error["hint"], verb
    assert project("sync", "docs", "-b", "handbook", "--name", "mine").exit == 12


@pytest.mark.parametrize("words", ("docs", "-b public", "--name docs"))
def test_sync_all_refuses_a_folder_a_bucket_and_a_name(words: str, project: RunSvc) -> None:
    ended = project("sync", "--all", *words.split(), "--json")
    assert ended.exit == 2
    assert "--all takes no" in ended.json["error"]["message"]


@pytest.mark.parametrize("words", ("docs -b public", "--name docs", "other", "--all"))
def test_unambiguous_arguments_proceed_to_the_service(words: str, project: RunSvc) -> None:
    assert project("sync", *words.split(), "--json").exit == 12


@pytest.mark.parametrize("is_verbose", [False, True])
def test_skipped_files_are_counted_or_if_verbose_listed(make_console: MakeConsole, is_verbose: bool) -> None:
    recorded = make_console(terminal=True, TERM="xterm-256color", NO_COLOR="1", COLUMNS="60")
    recorded.console.is_verbose = is_verbose
    mapping = Mapping(name="docs", folder=Path("docs"), bucket="b")
    with Display(recorded.console) as display:
        for path in ("a.md", f"{'long/' * 40}b.md"):
            display.show_item(mapping, ReportItem(path=path, action="created"))
        for number in range(5):
            display.show_item(mapping, ReportItem(path=f"{number}.gz", action="skipped", reason="type can't be read"))
        display.show([])
    shown = recorded.err.getvalue()
    assert "docs: created a.md" in shown, "a long line does not wrap"
    assert "b.md" not in shown, "a long line does not wrap"
    assert ("docs: 5 skipped" in shown) == (not is_verbose)
    assert ("4.gz" in shown) == is_verbose


@pytest.mark.parametrize("name", ("docs", "handbook", "handbook-of-the-north"))
def test_the_state_of_a_watcher_fits_60_columns(name: str, make_console: MakeConsole) -> None:
    console = make_console(terminal=True, TERM="xterm-256color", NO_COLOR="1", COLUMNS="60").console
    state = {"mapping": name, "bucket": name, "state": "watching", "pending": 12, "last": {"at": time.time()}}
    shown = render_states(console, [{**state, "dir": "/srv/projects/handbook/docs", "syncs": {}}])
    assert max(map(len, shown.splitlines())) <= 60
