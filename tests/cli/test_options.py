"""Parsing the arguments of a command line into options, and the files that they name into quotes."""

from pathlib import Path
from typing import Any

import pytest
import typer

from svc_cli.commands.daily.cite import Quote, read_quotes
from svc_cli.commands.daily.upload import UploadFlags, upload_options
from svc_cli.commands.invocations import Invocation, parse_duration, parse_metadata
from svc_cli.commands.parameters import Flags
from svc_cli.errors import UsageError
from tests.cli.terminals import MakeConsole, RunSvc
from tests.cli.test_help import EVERY


def _options(make_console: MakeConsole, **flags: Any) -> Any:
    call = Invocation(make_console().console, Flags())
    return upload_options(call, UploadFlags(**{"paths": ["a"], "bucket": "b", **flags}))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without settings in files or the environment."""
    for name in ("SVC_BUCKET", "SVC_PROGRESS", "SVC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SVC_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_settings_apply_where_no_flag_is_given(make_console: MakeConsole, alone: Path) -> None:
    assert [_options(make_console, strict=given).is_strict for given in (False, True)] == [False, True]
    (alone / "svc.toml").write_text('wait = "accepted"\n[upload]\njobs = 2\ntags = ["a"]\nstrict = true\n')
    options = _options(make_console)
    assert options.wait == "accepted"
    assert options.jobs == 2
    assert options.tags == ("a",)
    assert options.is_strict
    options = _options(make_console, wait="ready", jobs=3, tag=["b"])
    assert options.wait == "ready"
    assert options.jobs == 3
    assert options.tags == ("b",)


def test_contradicting_or_invalid_flags_are_a_usage_error(make_console: MakeConsole, alone: Path) -> None:
    wrong: list[dict[str, Any]] = [{"replace": True, "as_new": True}, {"timeout": "soon"}, {"bucket": None}]
    wrong += [{"jobs": 0}, {"jobs": 65}, {"tag": ["a,b"]}, {"tag": [" "]}, {"meta": ["novalue"]}]
    for flags in wrong:
        with pytest.raises(UsageError):
            pytest.fail(f"{flags} become {_options(make_console, **flags)}")


def test_duration_is_parsed_with_its_unit() -> None:
    times = {None: None, "90": 90, "1.5": 1.5, "90s": 90, "5m": 300, "1h": 3600, "2d": 172800, "0": 0}
    assert {text: parse_duration(text) for text in times} == times
    for text in ("", "s", "-1", "1w", "nan", "inf", "1e99"):
        with pytest.raises(UsageError):
            pytest.fail(f"{text!r} is read as {parse_duration(text)}")


def test_metadata_value_is_everything_after_the_first_equals_sign() -> None:
    assert parse_metadata(["a=1", "b=", "c=x=y"]) == {"a": "1", "b": "", "c": "x=y"}


def test_flags_before_and_after_the_command_are_merged() -> None:
    merged = Flags(json=True).over(Flags(debug=True, base_url="http://x"))
    assert merged.json
    assert merged.debug
    assert merged.base_url == "http://x"


#: The parameters for which blank means something.
MAY_BE_BLANK = {
    *("svc search words", "svc ask words", "svc help words"),
    *("svc events after", "svc source ls after", "svc webhook deliveries after", "svc webhook listen after"),
    *("svc bucket create description", "svc bucket set description"),
    *(f"svc agent {verb} {name}" for verb in ("create", "set") for name in ("instructions", "role", "surface")),
}


@pytest.mark.parametrize("value", ("", " ", "\n"))
def test_every_argument_and_option_refuses_a_blank_value(value: str) -> None:
    accepted, count = set(), 0
    for path, command in EVERY.items():
        context = command.context_class(command, info_name=path)
        taking = [each for each in command.get_params(context) if not getattr(each, "is_flag", False)]
        arguments = [each for each in taking if each.param_type_name == "argument"]
        for each in taking:
            first = ["x"] * arguments.index(each) if each in arguments else [each.opts[0]]
            count += 1
            try:
                command.make_context(path, [*first, value])
                accepted.add(f"{path} {each.name}")
            except (UsageError, typer.TyperException) as error:  # of a missing argument, if the value is not refused
                if "is blank" not in getattr(error, "message", ""):
                    accepted.add(f"{path} {each.name}")
    assert count > 200
    assert accepted == MAY_BE_BLANK


def test_a_blank_value_is_one_error_that_asks_for_an_unset_variable(svc: RunSvc) -> None:
    refused = svc("sync", "docs", "-b", "b", "--name", "", "--json")
    assert refused.failure == (2, "svc_usage")
    error = refused.json["error"]
    assert error["message"] == "--name is blank."
    assert "unset" in error["hint"]
    assert svc("--base-url", " ", "bucket", "ls", "--json").failure == (2, "svc_usage")


QUOTE = "The quay opens at dawn."
LOCATION: dict[str, Any] = {"page": 2, "line_start": None, "line_end": None, "char_start": 11, "char_end": 34}


def quote(text: str = QUOTE, **location: Any) -> Quote:
    return Quote(number=1, source_id="src_1", title="a", quote=text, location={**LOCATION, **location})


def test_read_quotes_accepts_answers_and_search_results() -> None:
    answer = {"sources": [{"number": 1, "source_id": "src_1", "title": "a", "quote": QUOTE, "location": LOCATION}]}
    page = {"data": [{"source_id": "src_1", "filename": "a", "text": QUOTE, "location": LOCATION}]}
    assert read_quotes(answer, "x.json") == read_quotes(page, "x.json") == [quote()]
    assert read_quotes({"sources": []}, "x.json") == []


def test_read_quotes_refuses_documents_that_are_not_answers() -> None:
    valid = {"source_id": "src_1", "quote": "x", "location": LOCATION}
    wrong: list[Any] = [{"quote": 5}, {"source_id": 5}, {"location": {}}]
    wrong += [{"location": {"char_start": "1", "char_end": 2}}]
    sources: list[Any] = [None, {}, [5], [{}], *([valid | fields] for fields in wrong)]
    documents: list[Any] = [None, 5, [], {}, *({"sources": each} for each in sources)]
    for document in documents:
        with pytest.raises(UsageError, match=r"x\.json"):
            pytest.fail(f"{document} has the quotes {read_quotes(document, 'x.json')}")
