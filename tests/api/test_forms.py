"""The multipart form of the one-call upload, and every way in which it can be wrong."""

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.forms import OVERHEAD_BYTES, PIECE_BYTES, receive_form
from svc_daemon.errors import ServiceError, StorageError
from tests.acceptance.installations import wait_until
from tests.api.servers import ask, connected, hardened, in_pieces, serving
from tests.limits import cpu_limit_s

MAX_FILE_BYTES = 3_000_000
BOUNDARY = "----b0undary"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
FILE = 'Content-Disposition: form-data; name="file"; filename="a.txt"'


class HashingSink:
    """Hashes what it is given; a file of the bytes `full` finds the disk full."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.sizes: list[int] = []
        self.discards = 0
        MADE.append(self)

    async def append(self, data: bytes) -> None:
        if data == b"full":
            raise StorageError
        self.sizes.append(len(data))
        self.hash.update(data)

    async def discard(self) -> None:
        self.discards += 1


#: Every sink of the running test.
MADE: list[HashingSink] = []


async def upload(request: Request) -> JSONResponse:
    form = await receive_form(request, HashingSink, MAX_FILE_BYTES)
    file = form.file
    seen = {"name": file.filename, "type": file.content_type, "size": file.size_bytes, "fields": form.fields}
    return JSONResponse(seen | {"sha256": file.sink.hash.hexdigest(), "appends": file.sink.sizes})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened([Route("/files", upload, methods=["POST"])])) as port:
        yield port


@pytest.fixture(autouse=True)
def sinks() -> Iterator[list[HashingSink]]:
    """The sinks of this test; none is discarded twice."""
    MADE.clear()
    yield MADE
    assert all(sink.discards <= 1 for sink in MADE)


def part(head: str, data: str | bytes = "") -> bytes:
    content = data.encode() if isinstance(data, str) else data
    return f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"


def field(name: str, data: str | bytes = "v") -> bytes:
    return part(f'Content-Disposition: form-data; name="{name}"', data)


def named(filename: str) -> bytes:
    """A file of this name."""
    return part(FILE.replace("a.txt", filename), "x")


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(client: httpx.Client, content: bytes | Iterator[bytes], kind: str = TYPE) -> httpx.Response:
    return client.post("/files", content=content, headers={"Content-Type": kind})


def assert_refused(answer: httpx.Response, status: int = 400, code: str = "invalid_request") -> None:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert all(sink.discards == 1 for sink in MADE)


def test_a_form_of_a_real_client_is_received(client: httpx.Client, sinks: list[HashingSink]) -> None:
    data = {"title": "Über uns", "tags": "a,b", "metadata": '{"a": 1}'}
    answer = client.post("/files", data=data, files={"file": ("Über.md", b"hello", "text/markdown")}).json()
    assert (answer["sha256"], answer["appends"]) == (hashlib.sha256(b"hello").hexdigest(), [5])
    expected = {"name": "Über.md", "type": "text/markdown", "size": 5, "fields": data}
    assert {name: answer[name] for name in expected} == expected
    assert [sink.discards for sink in sinks] == [0]


def test_fields_come_before_or_after_the_file_and_what_follows_the_form_is_ignored(client: httpx.Client) -> None:
    title, file = field("title", "t"), part(FILE, "x")
    for body in (form(title, file), form(file, title), form(title, file) + b"epilogue"):
        answer = post(client, body).json()
        assert (answer["fields"], answer["size"], answer["type"]) == ({"title": "t"}, 1, None)
    empty = post(client, form(part(FILE))).json()
    assert (empty["size"], empty["appends"]) == (0, [])
    assert post(client, form(named("docs/a.txt"))).json()["name"] == "a.txt"
    fields = [field(f"f{number}", "x" * 16 * 1024) for number in range(16)]
    assert len(post(client, form(*fields, file)).json()["fields"]) == 16


@pytest.mark.parametrize("size_bytes", [1, 3, 64, 10_000])
def test_a_form_with_what_rfc_2046_allows_is_received(client: httpx.Client, size_bytes: int) -> None:
    content = b"\r\n--" + BOUNDARY.encode()[:-1] + b"\r\n\r--\r\n" * 20
    content += b"folded\r\n text\r\n--" + BOUNDARY.encode() + b"X\r\n"
    folded = FILE.replace("; ", ";\r\n\t ") + "\r\nX-Note: a\r\n  b"
    whole = form(field("title", "t"), part(folded, content))
    blanks = whole.replace(f"--{BOUNDARY}\r\n".encode(), f"--{BOUNDARY} \t \r\n".encode())
    preambles = (
        b"",
        b"\r\n",
        b"MIME-Version: 1.0\r\n\r\n",
        b"--\r\n--" + BOUNDARY.encode()[:-1] + b"\r\n",
        b"-" * 9000,
    )
    for preamble in preambles:
        for body in (whole, blanks, whole + b"epilogue"):
            line = b"\r\n" if preamble and not preamble.endswith(b"\r\n") else b""
            answer = post(client, in_pieces(preamble + line + body, size_bytes)).json()
            assert (answer["name"], answer["fields"]) == ("a.txt", {"title": "t"}), preamble
            assert answer["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_preamble_of_delimiters_costs_linear_time() -> None:
    async def receive() -> None:
        pieces = iter([{"type": "http.request", "body": preamble, "more_body": False}])

        async def next_piece() -> dict[str, Any]:
            return next(pieces)

        scope = {"type": "http", "headers": [(b"content-type", TYPE.encode())]}
        await receive_form(Request(scope, next_piece), HashingSink, MAX_FILE_BYTES)

    preamble = f"\r\n--{BOUNDARY}\r\na".encode() * 100_000
    with cpu_limit_s(3), pytest.raises(ServiceError, match="not a multipart form"):
        asyncio.run(receive())


@pytest.mark.parametrize(
    ("written", "name"),
    (
        *(("say %22hi%22.md", 'say "hi".md'), ('say \\"hi\\".md', 'say "hi".md'), ("c%20d.md", "c%20d.md")),
        *(
            ("100%.md", "100%.md"),
            ("\\%22.md", "%22.md"),
            ("a%2522.md", "a%2522.md"),
            ("back\\\\slash.md", "slash.md"),
        ),
        *(("raw\\slash.md", "slash.md"), ("a;b=c.md", "a;b=c.md"), ("%e2%82%ac%22.md", '%e2%82%ac".md')),
    ),
)
def test_a_file_name_is_read_as_browsers_and_curl_write_it(client: httpx.Client, written: str, name: str) -> None:
    assert post(client, form(named(written))).json()["name"] == name


def test_an_encoded_line_break_in_a_file_name_is_refused_as_a_control_character(client: httpx.Client) -> None:
    for written in ("a%0Ab.md", "a%0d%0ab.md"):
        assert_refused(post(client, form(named(written))))


def test_a_large_file_goes_to_the_sink_in_pieces(client: httpx.Client) -> None:
    data = bytes(range(256)) * (MAX_FILE_BYTES // 256) + b"x" * (MAX_FILE_BYTES % 256)
    answer = client.post("/files", files={"file": ("a", data)}).json()
    assert (answer["size"], answer["sha256"]) == (MAX_FILE_BYTES, hashlib.sha256(data).hexdigest())
    assert all(size >= PIECE_BYTES for size in answer["appends"][:-1])


WRONG = {
    "no body": b"",
    "text": b"hello",
    "only a closing boundary": form(),
    "no file": form(field("title", "t")),
    "two files": form(part(FILE, "x"), part(FILE, "y")),
    "a file of another name": form(part(FILE.replace('"file"', '"document"'), "x")),
    "a second file of another name": form(part(FILE, "x"), part(FILE.replace('"file"', '"other"'), "x")),
    "file without filename": form(part('Content-Disposition: form-data; name="file"', "x")),
    "only filename*": form(part("Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''a.txt", "x")),
    "only filename*, other name": form(part("Content-Disposition: form-data; name=\"a\"; FILENAME*=UTF-8''a", "x")),
    "no closing boundary": part(FILE, "x"),
    "half a closing boundary": form(part(FILE, "x"))[:-4],
    "cut in the file": form(part(FILE, "x" * 100))[:150],
    "cut in the headers": form(part(FILE, "x"))[:40],
    "another boundary": form(part(FILE, "x")).replace(BOUNDARY.encode(), b"other"),
    "no name": form(part('Content-Disposition: form-data; filename="a.txt"', "x")),
    "no disposition": form(part("Content-Type: text/plain", "x")),
    "another disposition": form(part('Content-Disposition: attachment; name="file"; filename="a"', "x")),
    "two dispositions": form(part(f"{FILE}\r\n{FILE}", "x")),
    "a header without colon": form(part(f"{FILE}\r\nnonsense", "x")),
    "a header with a space in its name": form(part(f"{FILE}\r\nX Y: z", "x")),
    "an endless header": form(part(f"{FILE}\r\nX: {'y' * 10_000}", "x")),
    "many headers": form(part(f"{FILE}\r\n" + "\r\n".join(f"X{n}: y" for n in range(20)), "x")),
    "base64": form(part(f"{FILE}\r\nContent-Transfer-Encoding: base64", "eA==")),
    "a type that is none": form(part(f"{FILE}\r\nContent-Type: text", "x")),
    "a type with an escape": form(part(f"{FILE}\r\nContent-Type: text/\x1b", "x")),
    "the same field twice": form(field("title", "a"), field("title", "b"), part(FILE, "x")),
    "17 fields": form(*(field(f"f{n}") for n in range(17)), part(FILE, "x")),
    "a field over 16 KB": form(field("title", "x" * (16 * 1024 + 1)), part(FILE, "x")),
    "a field that is not UTF-8": form(field("title", b"\xff"), part(FILE, "x")),
    "a field with NUL": form(field("title", "a\0b"), part(FILE, "x")),
    "a field name that is not UTF-8": form(field("title", "a"), part(FILE, "x")).replace(b"title", b"\xff"),
    "a team": form(field("team_id"), part(FILE, "x")),
    "no file name": form(named("")),
    "a parent folder": form(named("../../etc/passwd")),
    "a parent folder, backslashes": form(named("..\\\\boot.ini")),
    "a control in the file name": form(named("a\x07.txt")),
    "a file name that is not UTF-8": form(part(FILE, "x")).replace(b"a.txt", b"\xff.txt"),
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_a_wrong_form_is_refused_and_leaves_nothing(client: httpx.Client, body: bytes) -> None:
    answer = post(client, body)
    assert_refused(answer)
    (error,) = answer.json()["error"]["details"]["errors"]
    assert set(error) == {"path", "message"}


def test_another_content_type_is_refused(client: httpx.Client) -> None:
    for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/mixed; boundary=x", ""):
        assert_refused(post(client, form(part(FILE, "x")), kind), 415, "unsupported_media_type")
    for rest in ("", "; boundary=", "; boundary=" + "x" * 71):
        assert_refused(post(client, form(part(FILE, "x")), "multipart/form-data" + rest))


def test_a_declared_length_that_proves_it_is_refused_unread(port: int, sinks: list[HashingSink]) -> None:
    head = f"POST /files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nExpect: 100-continue\r\n"
    answer = ask(port, f"{head}Content-Length: {MAX_FILE_BYTES + OVERHEAD_BYTES + 1}\r\n\r\n".encode())
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "file_too_large", "close")
    assert sinks == []


def test_a_client_that_still_sends_sees_why_it_is_refused(client: httpx.Client, sinks: list[HashingSink]) -> None:
    for size_bytes in (MAX_FILE_BYTES + 1, 3_900_000, 30_000_000):
        body = form(part(FILE, "x" * size_bytes))
        for content in (body, in_pieces(body, 65536)):
            answer = post(client, content)
            assert_refused(answer, 413, "file_too_large")
            assert answer.json()["error"]["details"] == {"max_bytes": MAX_FILE_BYTES}
    endless = form(part(FILE, "x")) + b"x" * (MAX_FILE_BYTES + OVERHEAD_BYTES)
    assert_refused(post(client, in_pieces(endless, 65536)), 413, "request_too_large")


def test_a_client_that_leaves_midway_leaves_nothing(port: int, sinks: list[HashingSink]) -> None:
    head = f"POST /files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: 2000000\r\n\r\n"
    begun = head.encode() + part(FILE, "x" * 600_000)
    answer = ask(port, begun, shut=True)
    assert (answer.status, answer.code) == (400, "invalid_request")
    wait_until(lambda: [sink.discards for sink in sinks] == [1], "the sink is discarded")
    with connected(port) as client:
        client.sendall(begun)
        wait_until(lambda: len(sinks) == 2, "the second file has begun")
    wait_until(lambda: [sink.discards for sink in sinks] == [1, 1], "the second sink is discarded")


def test_a_sink_that_fails_is_discarded_and_its_error_returned(client: httpx.Client, sinks: list[HashingSink]) -> None:
    assert_refused(post(client, form(part(FILE, "full"))), 503, "storage_full")
    assert [sink.discards for sink in sinks] == [1]
