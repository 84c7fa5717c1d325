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
    assert settings.find("bucket", "flag") == SettingValue("bucket", "flag", "flag")
    assert settings.find("bucket") == SettingValue("bucket", "environment", "environment SVC_BUCKET")
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


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('buckett = "x"', "buckett"),
        ("[upload]\njob = 3", "upload.job"),
        ('[uplaod]\njobs = "x"', "uplaod.jobs"),
        ("bucket = 3", "bucket"),
        ('[upload]\njobs = "four"', "upload.jobs"),
        ("[upload]\njobs = true", "upload.jobs"),
        ('wait = "never"', "wait"),
        ("[upload]\ntags = [1]", "upload.tags"),
        ('api_key = "sk-1"', "api_key"),
        ("bucket = ", "svc.toml"),
    ],
)
def test_a_wrong_line_is_an_error_that_names_it(tmp_path: Path, text: str, named: str) -> None:
    file = _write(tmp_path / "svc.toml", text)
    with pytest.raises(UsageError) as told:
        CliSettings.load(_environ(tmp_path), tmp_path)
    assert named in told.value.message
    assert str(file) in told.value.message


def test_a_key_in_a_file_is_refused_with_the_right_place_for_it(tmp_path: Path) -> None:
    _write(tmp_path / "svc.toml", 'api_key = "sk-1"')
    with pytest.raises(UsageError) as told:
        CliSettings.load(_environ(tmp_path), tmp_path)
    assert "svc auth login" in (told.value.hint or "")


def test_a_wrong_value_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SVC_PROGRESS"):
        CliSettings.load(_environ(tmp_path, SVC_PROGRESS="loud"), tmp_path)


@pytest.mark.parametrize(("value", "on"), [("1", True), ("true", True), ("", False), ("0", False), ("No", False)])
def test_an_on_off_variable_reads_as_people_write_it(tmp_path: Path, value: str, on: bool) -> None:
    assert CliSettings.load(_environ(tmp_path, SVC_NO_INPUT=value), tmp_path).is_on("SVC_NO_INPUT") is on


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    values = {"bucket": 'odd "name" \\ ü', "upload.jobs": 8, "upload.strict": True, "upload.tags": ["a", "b"]}
    file = user_file(_environ(tmp_path))
    write_file(file, values)
    assert read_file(file) == values
