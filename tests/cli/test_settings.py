"""Where settings come from, and what a file of settings may hold."""

from pathlib import Path

import pytest

from svc_cli.commands.config import write_file
from svc_cli.errors import UsageError
from svc_cli.settings import CliSettings, SettingValue, find_project_file, read_file, user_file


def _environ(tmp_path: Path, **variables: str) -> dict[str, str]:
    return {"SVC_CONFIG_DIR": str(tmp_path / "config"), **variables}


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_layer_wins_over_the_next(tmp_path: Path) -> None:
    user = _write(tmp_path / "config" / "config.toml", 'bucket = "user"\nprogress = "none"\nwait = "accepted"\n')
    project = _write(tmp_path / "p" / "svc.toml", 'bucket = "project"\nprogress = "plain"\n')
    settings = CliSettings.load(_environ(tmp_path, SVC_BUCKET="environment"), tmp_path / "p")
    for given, found in (("flag", "flag"), (None, "environment SVC_BUCKET")):
        assert settings.find("bucket", given) == SettingValue("bucket", found.split()[0], found)
    assert settings.find("progress") == SettingValue("progress", "plain", str(project), from_project=True)
    assert settings.find("wait") == SettingValue("wait", "accepted", str(user))
    assert settings.find("upload.jobs") == SettingValue("upload.jobs", 4, "default")


def test_the_nearest_project_file_upward_counts(tmp_path: Path) -> None:
    outer = _write(tmp_path / "svc.toml", "")
    inner = _write(tmp_path / "a" / "b" / "svc.toml", "")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir()
    assert find_project_file(deep) == inner
    assert find_project_file(tmp_path / "a") == outer


def test_a_wrong_line_is_an_error_that_names_it(tmp_path: Path) -> None:
    wrong = {'buckett = "x"': "buckett", "bucket = 3": "bucket", 'wait = "never"': "wait", "bucket = ": "svc.toml"}
    wrong |= {"[upload]\njob = 3": "upload.job", '[uplaod]\njobs = "x"': "uplaod.jobs"}
    wrong |= {f"[upload]\njobs = {value}": "upload.jobs" for value in ('"four"', "true")}
    wrong |= {"[upload]\ntags = [1]": "upload.tags", 'api_key = "sk-1"': "api_key"}
    for text, name in wrong.items():
        file = _write(tmp_path / "svc.toml", text)
        with pytest.raises(UsageError) as refused:
            CliSettings.load(_environ(tmp_path), tmp_path)
        assert [each for each in (name, str(file)) if each not in refused.value.message] == [], text
    assert "svc auth login" in (refused.value.hint or ""), "the right place for a key"


def test_a_wrong_value_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SVC_PROGRESS"):
        CliSettings.load(_environ(tmp_path, SVC_PROGRESS="loud"), tmp_path)


def test_an_on_off_variable_reads_as_people_write_it(tmp_path: Path) -> None:
    for value, on in {"1": True, "true": True, "": False, "0": False, "No": False}.items():
        assert CliSettings.load(_environ(tmp_path, SVC_NO_INPUT=value), tmp_path).is_on("SVC_NO_INPUT") is on, value


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    values = {"bucket": 'odd "name" \\ ü', "upload.jobs": 8, "upload.strict": True, "upload.tags": ["a", "b"]}
    file = user_file(_environ(tmp_path))
    write_file(file, values)
    assert read_file(file) == values
