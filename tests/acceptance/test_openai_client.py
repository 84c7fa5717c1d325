"""OpenAI's own Python client works with a real daemon: models, plain and streamed answers, and errors."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.acceptance.calls import make_bucket, start_post, take_in
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED
from tests.fetch.servers import Exchange, Script
from tests.llm.chats import chatting, chunk, stalling, streaming
from tests.samples import make_pdf

PAGES = [
    "Welcome to the harbour. This handbook is about how we work together.",
    "Working hours are flexible. The core time is from ten to three.",
    "Full-time employees get 30 days of vacation a year. Requests go to the harbour master.",
]
QUESTION = "How many vacation days do full-time employees get?"
QUOTE = "Full-time employees get 30 days of vacation a year."
ANSWER = f"{QUOTE} [1]"
LLM_KEY = "hunter2-key"
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
ASKED: dict[str, Any] = {"model": "svc-agent", "input": QUESTION}
CHAT: dict[str, Any] = {"model": "svc-agent", "messages": MESSAGES}
#: The fields added to OpenAI's answers: grounded, and the file, page and quote of each source.
SUPPORTED = (True, [("handbook.pdf", 3, QUOTE)])


@pytest.fixture(scope="module")
def with_handbook(shared_installation: Installation) -> Installation:
    """An installation with a ready PDF of three pages."""
    upload_handbook(shared_installation)
    return shared_installation


def upload_handbook(installation: Installation) -> None:
    with installation.client() as http:
        make_bucket(http, "empty")
        take_in(http, "handbook", "handbook.pdf", make_pdf(PAGES))


@contextmanager
def client_of(installation: Installation, key: str = "", retries: int = 0) -> Iterator[tuple[openai.OpenAI, list[str]]]:
    """Yield OpenAI's client and the list of paths that it sends requests to."""
    sent: list[str] = []
    hooks = {"request": [lambda request: sent.append(request.url.path)]}
    http = openai.DefaultHttpxClient(trust_env=False, event_hooks=hooks)
    options: dict[str, Any] = {"base_url": f"{installation.base_url}/v1", "api_key": key or installation.key}
    with openai.OpenAI(**options, max_retries=retries, http_client=http) as client:
        yield client, sent


@pytest.fixture
def client(with_handbook: Installation) -> Iterator[openai.OpenAI]:
    with client_of(with_handbook) as (client, _):
        yield client


def grounded(answer: Any) -> tuple[bool, list[tuple[str, int, str]]]:
    return answer.grounded, [(each["filename"], each["location"]["page"], each["quote"]) for each in answer.sources]


def test_openai_client_lists_and_retrieves_models(client: openai.OpenAI) -> None:
    assert "svc-agent" in [model.id for model in client.models.list()]
    assert client.models.retrieve("svc-rag-agent").id == "svc-rag-agent"


@pytest.mark.rule("agents.responses")
def test_response_has_the_answer_its_sources_and_a_citation(client: openai.OpenAI) -> None:
    answer = client.responses.create(**ASKED)
    assert (answer.output_text, answer.status, answer.model) == (ANSWER, "completed", "svc-agent")
    assert grounded(answer) == SUPPORTED
    assert answer._request_id is not None
    citation = answer.output[0].content[0].annotations[0]
    assert (citation.type, citation.filename, ANSWER[citation.index :]) == ("file_citation", "handbook.pdf", "[1]")


def test_streamed_response_has_the_same_answer_and_sources(client: openai.OpenAI) -> None:
    with client.responses.create(model="svc-rag-agent", input=QUESTION, stream=True) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER
    last = events[-1]
    assert last.type == "response.completed"
    assert (last.response.model, grounded(last.response)) == ("svc-rag-agent", SUPPORTED)
    # The client's own stream helper reads the same answer.
    with client.responses.stream(**ASKED) as read:
        kinds = [event.type for event in read]
        answer = read.get_final_response()
    assert "response.output_text.annotation.added" in kinds
    assert (answer.output_text, grounded(answer)) == (ANSWER, SUPPORTED)


@pytest.mark.rule("agents.chat")
def test_chat_completion_has_the_answer_its_sources_and_usage(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**CHAT)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (ANSWER, "stop")
    assert grounded(answer) == SUPPORTED
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


def test_streamed_chat_completion_has_the_same_answer_and_sources(client: openai.OpenAI) -> None:
    with client.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}) as stream:
        *chunks, ended, usage = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == ANSWER
    assert (ended.choices[0].finish_reason, grounded(ended)) == ("stop", SUPPORTED)
    assert usage.usage is not None
    # The client's own stream helper reads the same answer.
    with client.chat.completions.stream(**CHAT) as read:
        message = read.get_final_completion().choices[0].message
    assert message.content == ANSWER
    assert [annotation.to_dict()["file_id"] for annotation in message.annotations or []] != []


FAILING: list[tuple[str, dict[str, Any], type[openai.APIStatusError], str, str | None]] = [
    ("", {"model": "gpt-9"}, openai.NotFoundError, "model_not_found", None),
    ("", {"temperature": "hot"}, openai.BadRequestError, "invalid_request", "temperature"),
    ("", {"extra_body": {"buckets": ["empty"]}}, openai.ConflictError, "bucket_store_indexing_pending", None),
    ("sk-nobody", {}, openai.AuthenticationError, "invalid_project_key", None),
    ("reader", {}, openai.PermissionDeniedError, "forbidden_project_key", None),
]


@pytest.mark.rule("agents.responses", "agents.chat")
def test_errors_raise_the_exceptions_of_the_openai_client(with_handbook: Installation) -> None:
    with with_handbook.client() as http:
        # A key that may search but not ask.
        made = http.post("/v1/keys", json={"name": "reader", "capabilities": ["knowledge:search"]}).json()
    for key, fields, kind, code, param in FAILING:
        with client_of(with_handbook, made["key"] if key == "reader" else key) as (client, _):
            for streams in (False, True):
                with pytest.raises(kind) as failed:
                    client.responses.create(**ASKED | {"stream": streams} | fields)
                error = failed.value
                assert (type(error), error.code, error.param) == (kind, code, param), (fields, streams)
                assert str(error.request_id).startswith("req_")


@dataclass(frozen=True)
class Writing:
    """A daemon whose answers a language model writes, and the next responses of the model's server."""

    installation: Installation
    scripts: list[Script]


@contextmanager
def running_with_handbook(folder: Any, **variables: str) -> Iterator[Installation]:
    installation = Installation(folder, **variables, **UNLIMITED).start()
    try:
        upload_handbook(installation)
        yield installation
    finally:
        installation.clear()


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writing]:
    scripts: list[Script] = []

    def play(exchange: Exchange) -> None:
        scripts.pop(0)(exchange)

    with chatting(play) as server:
        variables = {"SVC_LLM_BASE_URL": server.url("/v1"), "SVC_LLM_MODEL": "small", "SVC_LLM_API_KEY": LLM_KEY}
        variables |= {"SVC_LIMIT_STOP_SECONDS": "4", "SVC_LOG_LEVEL": "debug"}
        with running_with_handbook(tmp_path_factory.mktemp("writing"), **variables) as installation:
            yield Writing(installation, scripts)


@pytest.mark.one_daemon  # several may exceed the limit by the answers of a second
def test_exceeded_quota_is_not_retried(tmp_path: Any) -> None:
    small = running_with_handbook(tmp_path / "small", SVC_LIMIT_ANSWERS_PER_MONTH="1")
    with small as installation, client_of(installation, retries=5) as (client, sent):
        client.responses.create(**ASKED)
        with pytest.raises(openai.RateLimitError) as refused:
            client.responses.create(**ASKED)
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(**CHAT)
    assert (refused.value.code, refused.value.type) == ("rag_quota_exceeded", "insufficient_quota")
    assert sent == ["/v1/responses", "/v1/responses", "/v1/chat/completions"]


def test_model_failure_is_retried_before_the_first_word_and_reported_after_it(writing: Writing) -> None:
    failing, halfway = streaming(b"", status=500), streaming(chunk("Full-time employees get"))
    writing.scripts.extend([failing, halfway, halfway])
    with client_of(writing.installation, retries=1) as (client, sent):
        with client.responses.create(**ASKED, stream=True) as stream:
            kinds = [event.type for event in stream]
        assert (kinds[-2:], len(sent)) == (["error", "response.failed"], 2)
        chat = client.chat.completions.create(**CHAT, stream=True)
        with chat, pytest.raises(openai.APIError, match="in the middle") as broken:
            list(chat)
    assert broken.value.code == "answer_failed"


def test_stream_ends_with_an_error_when_the_daemon_stops(writing: Writing) -> None:
    writing.scripts.append(stalling(chunk("Full-time employees ")))
    with client_of(writing.installation) as (client, _), ThreadPoolExecutor(1) as pool:
        with client.responses.create(**ASKED, stream=True) as stream:
            events = iter(stream)
            while next(events).type != "response.output_text.delta":
                pass
            stopping = pool.submit(writing.installation.stop)
            left = list(events)
        assert stopping.result() == 0
    assert [event.type for event in left][-2:] == ["error", "response.failed"]
    assert "stopping" in str(left[-2])
    assert "Traceback" not in writing.installation.printed()
    writing.installation.start()


def test_doctor_reports_whether_the_language_model_is_reachable(writing: Writing) -> None:
    writing.scripts.extend([streaming(b"{}", content_type="application/json"), streaming(b"{}", status=401)])
    why = "small can't write them. The model's server answered 401."
    refused = (3, "failed", f"{why} Is its key in SVC_LLM_API_KEY_FILE or SVC_LLM_API_KEY?")
    for expected in ((0, "ok", "small writes them, and its server answers"), refused):
        doctor = writing.installation.svc("doctor", "--json")
        (check,) = [check for check in doctor.json["checks"] if check["check"] == "answers"]
        assert (doctor.exit, check["state"], check["text"]) == expected


def test_request_to_the_model_is_aborted_when_the_client_disconnects(writing: Writing) -> None:
    heard: list[bytes] = []

    def wait(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "text/event-stream", "connection": "close"})
        exchange.send(chunk("Full-time "))
        heard.append(b"asked")
        heard.append(exchange.connection.recv(1))

    for streams in (True, False):
        heard.clear()
        writing.scripts.append(wait)
        with start_post(writing.installation, "/v1/responses", ASKED | {"stream": streams}) as line:
            wait_until(lambda: heard == [b"asked"], "the request to the model")
            if streams:
                assert line.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: heard == [b"asked", b""], "the request to the model is aborted")
    logged = writing.installation.files.log.read_text()
    assert (LLM_KEY in logged, "Traceback" in logged) == (False, False)
