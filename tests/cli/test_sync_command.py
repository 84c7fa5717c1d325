"""What the words of `svc sync` and `svc watch run` mean, before anything is asked of a service."""

from pathlib import Path

import pytest

from tests.cli.consoles import RunSvc

MAPS = """\
bucket = "handbook"

[[map]]
name = "docs"
dir = "docs"

[[map]]
name = "public"
dir = "docs"
bucket = "public"
"""


@pytest.fixture
def project() -> Path:
    """A folder with two mappings of one folder, and another folder beside it."""
    Path("svc.toml").write_text(MAPS)
    for name in ("docs/deep", "other"):
        Path(name).mkdir(parents=True)
    return Path.cwd()


@pytest.mark.parametrize("verb", [("sync",), ("diff",), ("watch", "run")])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("docs",), "Several mappings are meant: docs into handbook, public into public."),
        (("other", "--name", "docs"), "The mapping 'docs' is of "),
        (("docs/deep",), "the mappings 'docs' and 'deep' into handbook overlap"),
        (("docs", "--name", "third"), "the mappings 'docs' and 'third' into handbook overlap"),
    ],
)
def test_what_would_take_another_mappings_files_is_refused(
    svc: RunSvc, project: Path, verb: tuple[str, ...], words: tuple[str, ...], told: str
) -> None:
    ended = svc(*verb, *words, "--json")
    assert (ended.exit, ended.json["error"]["code"]) == (2, "svc_usage")
    assert told in ended.json["error"]["message"]
    assert ended.json["error"]["hint"]


@pytest.mark.parametrize("words", [("docs",), ("-b", "public"), ("--name", "docs")])
def test_all_takes_nothing_that_it_would_not_heed(svc: RunSvc, project: Path, words: tuple[str, ...]) -> None:
    ended = svc("sync", "--all", *words, "--json")
    assert (ended.exit, "--all takes no" in ended.json["error"]["message"]) == (2, True)


@pytest.mark.parametrize("words", [("docs", "-b", "public"), ("--name", "docs"), ("other",), ("--all",)])
def test_what_is_clear_goes_on_to_the_service(svc: RunSvc, project: Path, words: tuple[str, ...]) -> None:
    assert svc("sync", *words, "--json").exit == 12
