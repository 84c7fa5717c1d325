"""The Python client's methods return the types that they declare, and the examples of its docs work."""

import inspect
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import TypeAdapter, ValidationError

from svc_cli.client import (
    Client,
    DaemonUnreachable,
    TitleConflict,
    types,
)
from svc_cli.client.transport import Reply
from tests.acceptance import downstream
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, wait_until
from tests.cli.odd_servers import serving
from tests.conftest import UNLIMITED

PAGE = (ROOT / "docs/how-to/python.md").read_text(encoding="utf-8")
#: The names that the annotations of the methods use.
NAMES = {**vars(types), **vars(typing), "Iterator": Iterator, "Reply": Reply}


@pytest.fixture(scope="module")
def open_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation that may fetch from this machine."""
    made = Installation(tmp_path_factory.mktemp("open"), SVC_FETCH_ALLOW="127.0.0.0/8", **UNLIMITED)
    made.start()
    yield made
    made.clear()


def differences(value: Any, wanted: Any, name: str) -> list[str]:
    """Return how a value differs from a type; for JSON, missing, unknown and wrong fields."""
    if isinstance(wanted, type) and get_origin(wanted) is None and not hasattr(wanted, "__required_keys__"):
        return [] if isinstance(value, wanted) else [f"{name}: {value!r} is no {wanted.__name__}"]
    try:
        # What a wait returns by id has all fields of a source, and its type names only some.
        extra: Literal["ignore", "forbid"] = "ignore" if get_origin(wanted) is dict else "forbid"
        TypeAdapter(wanted).validate_python(value, strict=True, extra=extra)
    except ValidationError as error:
        return [f"{name}: {error}"]
    return []


class CheckedCalls:
    """Compares what each method of the client returns with its declared type during a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.called: set[str] = set()
        self.differences: list[str] = []
        #: The methods that declare a return type.
        self.typed: set[str] = set()
        for name, method in inspect.getmembers(Client, inspect.isfunction):
            wanted = inspect.signature(method).return_annotation
            if isinstance(wanted, str) and not name.startswith("_"):
                self.typed.add(name)
                wanted = eval(wanted, vars(sys.modules[method.__module__]) | NAMES)
                monkeypatch.setattr(Client, name, self._checked(name, method, wanted))

    def _checked(self, name: str, method: Callable[..., Any], wanted: Any) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.called.add(name)
            returned = method(*args, **options)
            if get_origin(wanted) is Iterator:
                return self._each(name, returned, get_args(wanted)[0])
            if isinstance(returned, Reply):
                bodies = [wanted] if get_origin(wanted) is Reply else get_args(wanted)
                choices = tuple(body for reply in bodies for body in get_args(reply))
                self.differences += differences(returned.body, Union[choices], name)  # noqa: UP007 - of a tuple
            elif wanted is not None:
                self.differences += differences(returned, wanted, name)
            return returned

        return call

    def _each(self, name: str, returned: Iterator[Any], wanted: Any) -> Iterator[Any]:
        for each in returned:
            self.differences += differences(each, wanted, name)
            yield each


@pytest.mark.rule("client.types")
def test_each_client_method_returns_what_its_type_declares(
    open_installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = CheckedCalls(monkeypatch)
    with serving() as odd, Client(open_installation.base_url, open_installation.key) as client:
        odd.answers["GET /ferries.md"] = (200, b"# Ferries\n\nOne leaves at nine.", {"Content-Type": "text/markdown"})
        odd.answers["POST /hook"] = (200, {}, {})
        bucket = downstream.use_buckets(client)
        source_ids = downstream.use_uploads(client, bucket, tmp_path) + downstream.use_batches(client, bucket)
        downstream.use_sources(client, bucket, source_ids)
        downstream.use_searches(client, bucket)
        downstream.use_agents_and_keys(client, bucket)
        downstream.use_imports_and_webhooks(client, bucket, odd.url, lambda done: wait_until(done, "the webhook call"))
        downstream.use_the_rest(client)
    assert checked.differences == []
    assert checked.typed - checked.called == set()
    assert len(checked.typed) > 40


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.rule("client.page")
def test_docs_example_prints_the_passage_and_the_answer(shared_installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text("# Leave\n\nFull-time employees get 30 days of leave a year.\n")
    (example,) = [block for block in python_blocks() if "with Client() as client" in block]
    assert len(example.split("as client:\n")[1].splitlines()) < 10
    (tmp_path / "example.py").write_text(example)
    (settings,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    shared_installation.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = f"{settings}\n{sys.executable} example.py"
    ended = shared_installation.run("sh", "-euc", commands, cwd=tmp_path)
    assert ended.exit == 0, ended.stderr
    passage, answer = ended.stdout.strip().split("\n")[0], ended.stdout.strip().split("\n")[-1]
    assert passage.startswith("leave.md ")
    assert ("30 days" in answer, answer.endswith("True")) == (True, True)


@pytest.mark.rule("client.page")
def test_other_docs_examples_return_what_the_page_says(shared_installation: Installation, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in python_blocks()[1:]:
        exec(block, names)
    good, bad = tmp_path / "good.md", tmp_path / "bad.pdf"
    good.write_text("Words.")
    bad.write_bytes(b"%PDF-1.7\nnothing that a PDF has")
    with Client(shared_installation.base_url, shared_installation.key) as client:
        client.ensure_bucket("handbook")
        assert names["add"](client, str(good)) == f"{good} is ready"
        assert names["add"](client, str(bad)).startswith(f"{bad} can't be searched: 1 of 1 sources can't become ready")
        good.write_text("Other words.")
        assert names["add"](client, str(good)).startswith(f"{good} was not sent: the bucket has different content")
        (source,) = client.sources("handbook", title=str(good.name))
        assert names["describe"](source) == "good.md: active, no pages"
        assert names["largest"](client.buckets()["buckets"])["slug"] == "handbook"


def test_client_without_arguments_finds_what_the_command_line_finds_and_starts_it_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Installation(tmp_path)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    try:
        with pytest.raises(DaemonUnreachable):
            Client()
        with Client(autostart=True) as client:
            client.ensure_bucket("b")
            url = client.base_url
        with Client() as client:
            assert ([each["slug"] for each in client.buckets()["buckets"]], client.base_url) == (["b"], url)
        assert made.svc("config", "set", "base_url", "http://127.0.0.1:1").exit == 0
        with pytest.raises(DaemonUnreachable, match=r"Nothing answers at http://127\.0\.0\.1:1"):
            Client()
    finally:
        made.clear()


def test_upload_of_a_file_that_the_bucket_has_stores_nothing(
    shared_installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/leave.md"
    path.write_text("Thirty days.")
    monkeypatch.chdir(tmp_path)
    assert shared_installation.svc("upload", "d", "-b", "same", cwd=tmp_path).exit == 0
    with Client(shared_installation.base_url, shared_installation.key) as client:
        first = client.upload_file("same", "d/leave.md", tags=["hr"])
        again = client.upload_file("same", path, metadata={"year": 2026})
        assert (first["title"], again["id"], again["tags"], again["metadata"]) == (
            *("d/leave.md", first["id"], ["hr"]),
            {"year": 2026},
        )
        path.write_text("Forty days.")
        with pytest.raises(TitleConflict, match="nothing was sent"):
            client.upload_file("same", "d/leave.md")
        replaced = client.upload_file("same", "d/leave.md", on_conflict="replace")
        client.wait_until_ready(replaced["id"])
        assert [each["id"] for each in client.sources("same", status="all")] == [replaced["id"]]
        assert (replaced["tags"], replaced["metadata"]) == (["hr"], {"year": 2026})


@pytest.mark.rule("client.retries")
def test_upload_without_an_idempotency_key_is_retried_with_a_generated_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    busy: Any = (503, {"error": {"code": "shutting_down", "message": "Stopping.", "retryable": True}}, {})
    with serving() as odd, Client(odd.url, "sk-test") as client:
        odd.answers["GET /v1/buckets/b/sources"] = (200, {"sources": []}, {})
        odd.answers["POST /v1/buckets/b/files"] = [busy, (201, {"id": "src_1"}, {}), (201, {"id": "src_2"}, {})]
        assert client.upload_file("b", tmp_path / "a.md")["id"] == "src_1"
        assert client.upload_file("b", tmp_path / "a.md")["id"] == "src_2"
        first, retry, other = [
            headers["Idempotency-Key"] for _, _, headers in odd.requests if "Idempotency-Key" in headers
        ]
        assert (first == retry, first == other) == (True, False)
