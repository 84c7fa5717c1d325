"""The sources of settings and API keys, the validation of settings files, and the storage of keys."""

import os
from pathlib import Path

import pytest

from svc_cli.commands.machine.config import write_file
from svc_cli.credentials import CredentialFile, ServiceAddress, check_key, find_key, origin_of
from svc_cli.errors import NotAuthenticated, UsageError
from svc_cli.settings import CliSettings, SettingsFile, SettingValue, find_project_file, user_file
from tests.cli.terminals import write


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"SVC_CONFIG_DIR": str(tmp_path / "config")}


def _write(path: Path, text: str) -> Path:
    write(path.parent, path.name, data=text.encode())
    return path


def test_settings_precedence_is_flag_environment_project_user_default(environ: dict[str, str], tmp_path: Path) -> None:
    user = _write(tmp_path / "config" / "config.toml", 'bucket = "user"\nprogress = "none"\nwait = "accepted"\n')
    project = _write(tmp_path / "p" / "svc.toml", 'bucket = "project"\nprogress = "plain"\n')
    settings = CliSettings.load(environ | {"SVC_BUCKET": "environment"}, tmp_path / "p")
    for given, found in (("flag", "flag"), (None, "environment SVC_BUCKET")):
        assert settings.find("bucket", given) == SettingValue("bucket", found.split()[0], found)
    assert settings.find("progress") == SettingValue("progress", "plain", str(project), from_project=True)
    assert settings.find("wait") == SettingValue("wait", "accepted", str(user))
    assert settings.find("upload.jobs") == SettingValue("upload.jobs", 4, "default")


def test_nearest_project_file_in_a_parent_folder_is_used(tmp_path: Path) -> None:
    outer = _write(tmp_path / "svc.toml", "")
    inner = _write(tmp_path / "a" / "b" / "svc.toml", "")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir()
    assert find_project_file(deep) == inner
    assert find_project_file(tmp_path / "a") == outer


def test_project_file_that_cannot_be_read_is_not_passed_over(environ: dict[str, str], tmp_path: Path) -> None:
    _write(tmp_path / "svc.toml", 'bucket = "outer"')
    _write(tmp_path / "in" / "svc.toml", 'bucket = "inner"').chmod(0)
    try:
        found = CliSettings.load(environ, tmp_path / "in").get("bucket")
    except UsageError as error:
        found = error.message.rpartition(": ")[0]
    inner = str(tmp_path / "in" / "svc.toml")
    assert found == "inner" if os.access(inner, os.R_OK) else inner in found


def test_invalid_setting_in_a_file_is_an_error_that_names_it(environ: dict[str, str], tmp_path: Path) -> None:
    wrong = {'buckett = "x"': "buckett", "bucket = 3": "bucket", 'wait = "never"': "wait", "bucket = ": "svc.toml"}
    wrong |= {"bucket = " + "[" * 5000: "deeper than", ".".join("a" * 5000) + " = 1": "deeper than"}
    wrong |= {
        "bucket = 1" + "0" * 5000: "svc.toml",
        "[upload]\njob = 3": "upload.job",
        '[uplaod]\njobs = "x"': "uplaod.jobs",
    }
    wrong |= {f"[upload]\njobs = {value}": "upload.jobs" for value in ('"four"', "true")}
    wrong |= {'base_url = ""': "base_url", 'bucket = " "': "bucket", '[sync]\nexclude = [""]': "sync.exclude"}
    wrong |= {"[upload]\ntags = [1]": "upload.tags", 'api_key = "sk-1"': "api_key"}
    for text, name in wrong.items():
        file = _write(tmp_path / "svc.toml", text)
        with pytest.raises(UsageError) as refused:
            CliSettings.load(environ, tmp_path)
        assert [each for each in (name, str(file)) if each not in refused.value.message] == [], text
    assert "svc auth login" in (refused.value.hint or ""), "the hint names the right place for a key"


def test_error_for_an_invalid_environment_value_names_the_variable(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SVC_PROGRESS"):
        CliSettings.load(environ | {"SVC_PROGRESS": "loud"}, tmp_path)


@pytest.mark.parametrize("blank", ("", " "))
def test_blank_variable_never_lets_another_place_say_where_to_send(
    blank: str, environ: dict[str, str], tmp_path: Path
) -> None:
    _write(tmp_path / "svc.toml", 'bucket = "other"\n')
    for name, variable in (("base_url", "SVC_BASE_URL"), ("bucket", "SVC_BUCKET")):
        settings = CliSettings.load(environ | {variable: blank}, tmp_path)
        with pytest.raises(UsageError, match=f"{variable} is blank"):
            settings.get(name)
        assert settings.get(name, "given") == "given"
    assert CliSettings.load(environ | {"SVC_PROGRESS": blank}, tmp_path).get("progress") == "auto"


@pytest.mark.parametrize(("value", "on"), {"1": True, "true": True, "": False, "0": False, "No": False}.items())
def test_on_off_variable_accepts_the_usual_spellings(
    value: str, on: bool, environ: dict[str, str], tmp_path: Path
) -> None:
    assert CliSettings.load(environ | {"SVC_NO_INPUT": value}, tmp_path).is_on("SVC_NO_INPUT") is on


def test_settings_file_is_read_back_as_it_was_written(environ: dict[str, str]) -> None:
    values = {"bucket": 'odd "name" \\ ü', "upload.jobs": 8, "upload.strict": True, "upload.tags": ["a", "b"]}
    file = user_file(environ)
    write_file(file, values)
    assert SettingsFile.read(file).values == values


HERE = "http://127.0.0.1:7820"
THERE = "https://svc.example"


def test_origin_is_normalized_and_an_invalid_url_is_refused() -> None:
    origins = {"http://LOCALHOST:80/": "http://localhost:80", "https://svc.example/base": "https://svc.example:443"}
    origins |= {origin: origin for origin in ("http://127.0.0.1:7820", "http://[::1]:7820")}
    assert {url: origin_of(url) for url in origins} == origins
    for url in ("", "svc.example", "ftp://svc.example", "http://", "http://host:notaport"):
        with pytest.raises(UsageError):
            origin_of(url)


def test_stored_key_is_used_only_for_its_own_origin(environ: dict[str, str]) -> None:
    CredentialFile(environ).store(origin_of(THERE), "sk-there", "ins_1")
    assert find_key(environ, ServiceAddress(THERE + "/")).key == "sk-there"
    for url in ("https://svc.example:8443", "http://svc.example"):
        with pytest.raises(NotAuthenticated):
            find_key(environ, ServiceAddress(url))


def test_key_precedence_is_environment_key_file_stored_key_admin_key(environ: dict[str, str], tmp_path: Path) -> None:
    key_file, admin_key = tmp_path / "key", tmp_path / "admin.key"
    key_file.write_text("sk-file\n")
    admin_key.write_text("sk-admin\n")
    here = ServiceAddress(HERE, admin_key=admin_key)
    assert find_key(environ, here).key == "sk-admin"
    CredentialFile(environ).store(origin_of(HERE), "sk-stored", "ins_1")
    assert find_key(environ, here).key == "sk-stored"
    environ["SVC_API_KEY_FILE"] = str(key_file)
    assert find_key(environ, here).key == "sk-file"
    environ["SVC_API_KEY"] = "sk-environment"
    assert find_key(environ, here).key == "sk-environment"


def test_credential_file_is_private_and_forget_removes_a_key(environ: dict[str, str]) -> None:
    stored = CredentialFile(environ)
    stored.store(origin_of(HERE), "sk-here", "ins_1")
    assert stored.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in stored.path.parent.iterdir()] == ["credentials.json"]
    assert [stored.forget(origin_of(HERE)) for _ in range(2)] == [True, False]
    assert stored.get(origin_of(HERE)) is None


@pytest.mark.parametrize("text", ("[" * 5000, "{", "[" * 250 + "]" * 250))
def test_deeply_nested_or_invalid_credential_file_is_named_in_the_error(text: str, environ: dict[str, str]) -> None:
    path = _write(CredentialFile(environ).path, text)
    with pytest.raises(UsageError, match=str(path)):
        CredentialFile(environ).get(origin_of(HERE))


@pytest.mark.parametrize("text", ("", " \n", "two words", "sk-\u00fc", "sk-\x00"))
def test_key_that_no_header_can_carry_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        check_key(text, "the file")


def test_missing_key_file_is_named_in_the_error(environ: dict[str, str], tmp_path: Path) -> None:
    environ["SVC_API_KEY_FILE"] = str(tmp_path / "none")
    with pytest.raises(UsageError, match="none"):
        find_key(environ, ServiceAddress(HERE))
