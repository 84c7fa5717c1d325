"""Answers written by a language model: streaming, checked citations, and failures of the model."""

import json

import pytest

from svc_daemon.core.answers.conversations import RULES
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import details_of
from tests.api.asking import CHAT, DOORS, HANDBOOK, RESPONSES, annotations_of, ask, events_of, send, stream, text_of
from tests.api.daemons import Daemon
from tests.fetch.servers import Script
from tests.llm.chats import answering, chatting, chunk, event, question_asked, saying, stalling, streaming

VACATION = "How many vacation days do full-time employees get?"


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def number_of(passages: str, words: str) -> int:
    """Return the number, in the prompt, of the passage with these words."""
    (part,) = [part for part in passages.split(" end of passage ") if words in part][:1]
    return int(part.partition(": ")[0].rpartition("passage ")[2])


def answer_correctly(shown: str) -> str:
    return f"They get 30 days of vacation [{number_of(shown, '30 days')}]."


def test_written_answer_has_checked_citations_whether_streamed_or_not(knowing: Daemon, door: str) -> None:
    with chatting(answering(answer_correctly)) as server, knowing.writing(server.url("/v1")):
        answer = ask(knowing, VACATION, door, buckets=["inbox"])
        events = stream(knowing, VACATION, door, buckets=["inbox"])
    assert (text_of(answer), answer["grounded"]) == ("They get 30 days of vacation [1].", True)
    assert [source["quote"] for source in answer["sources"]] == ["Full-time employees get 30 days of vacation a year."]
    assert [annotation["index"] for annotation in annotations_of(answer)] == [29]
    if door == RESPONSES:
        deltas, whole = [each["delta"] for each in events if each.get("delta")], events[-1]["response"]
    else:
        deltas = list(filter(None, (each["choices"][0]["delta"].get("content") for each in events)))
        whole = events[-1]
    assert ("".join(deltas), len(deltas) > 5) == (text_of(answer), True)
    assert (whole["grounded"], len(whole["sources"])) == (True, 1)


@pytest.mark.parametrize("streams", [False, True])
def test_answer_fails_if_its_source_is_deleted_while_the_model_writes(
    knowing: Daemon, door: str, streams: bool
) -> None:
    knowing.make_bucket("passing")
    passing = knowing.add_ready(b"# Leave\n\nTrainees get 12 days of vacation.\n", bucket="passing")

    def slow(shown: str) -> str:
        assert knowing.ask("DELETE", f"/v1/sources/{passing}").status_code == 200
        return f"Trainees get 12 days of vacation [{number_of(shown, '12 days')}]."

    with chatting(answering(slow)) as server, knowing.writing(server.url("/v1")):
        question = "How many vacation days do trainees get?"
        answer = send(knowing, door, question, stream=streams, buckets=["passing"])
    assert "removed while the answer was being written" in answer.text
    assert answer.status_code == (200 if streams else 502)
    assert ("answer_failed" in answer.text, "file_citation" in answer.text) == (True, False)


def test_system_prompt_has_the_rules_of_the_service_and_of_the_caller(knowing: Daemon, door: str) -> None:
    guided = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": VACATION}]
    with chatting(answering(answer_correctly)) as server, knowing.writing(server.url("/v1")):
        ask(knowing, VACATION, door, **{"input" if door == RESPONSES else "messages": guided})
    system = json.loads(server.requests[0].body)["messages"][0]
    assert system == {"role": "system", "content": f"{RULES}\n\nBe brief."}
    assert question_asked(server).endswith(f"Question: {VACATION}")


def test_model_is_not_called_if_nothing_was_found(knowing: Daemon, door: str) -> None:
    with chatting(answering(answer_correctly)) as server, knowing.writing(server.url("/v1")):
        answer = ask(knowing, "Which walrus won the chess tournament in Mongolia?", door)
    assert (answer["grounded"], answer["sources"], server.requests) == (False, [], [])


UNSUPPORTED = {
    "no such passage": "They get 30 days of vacation [99].",
    "no mark at all": "They get 30 days of vacation.",
    "words that aren't there": 'It says "employees get 90 days of vacation a year" [1].',
    "a number that isn't there": "They get 90 days of vacation [1].",
    "a name that isn't there": "Full-time employees get 30 days of vacation from Anna Meier [1].",
    "something else": "The walrus won the tournament [1].",
    "a true sentence and an invented one": "Part-time staff get vacation [1]. They may also fly to the moon.",
    "that it doesn't know": "I found nothing about this in the sources.",
}


@pytest.mark.parametrize("text", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_answer_that_the_passages_do_not_support_is_not_grounded_and_cites_no_other_source(
    knowing: Daemon, door: str, text: str
) -> None:
    with chatting(streaming(saying(text))) as server, knowing.writing(server.url("/v1")):
        answer = ask(knowing, VACATION, door, buckets=["inbox"])
    assert (answer["grounded"], "[99]" in text_of(answer)) == (False, False)
    for source in answer["sources"]:
        assert (source["filename"], source["quote"].encode() in HANDBOOK) == ("handbook.md", True)


FAILING: list[Script] = [*(streaming(b"", status=status) for status in (500, 401)), streaming(b"data: x\n\n")]
FAILING += [streaming(saying("")), streaming(saying(" ", "\n")), streaming(), stalling()]


def test_model_that_fails_before_its_first_word_gets_an_error_response(knowing: Daemon, door: str) -> None:
    for script in FAILING:
        code, first_word_s = ("answer_timeout", 0.3) if script is FAILING[-1] else ("answer_failed", PATIENCE_S)
        with chatting(script) as server, knowing.writing(server.url("/v1"), first_word_s=first_word_s):
            for streams in (False, True):
                details_of(send(knowing, door, VACATION, stream=streams), code)


HALFWAY: list[tuple[Script, str]] = [
    (streaming(chunk("They get 30")), "answer_failed"),
    (streaming(chunk("They get 30"), event({"error": {"message": "secret"}})), "answer_failed"),
    (stalling(chunk("They get 30")), "answer_timeout"),
]


@pytest.mark.parametrize(("script", "code"), HALFWAY)
def test_model_that_fails_halfway_fails_plain_and_streamed_answers(knowing: Daemon, script: Script, code: str) -> None:
    silent_s = 0.3 if code == "answer_timeout" else PATIENCE_S
    with chatting(script) as server, knowing.writing(server.url("/v1"), silent_s=silent_s):
        plain = [send(knowing, door, VACATION) for door in DOORS]
        events, chat = stream(knowing, VACATION), send(knowing, CHAT, VACATION, stream=True)
    for answer in plain:
        details_of(answer, code)
        assert "secret" not in answer.text
    *_, error, failed = events
    response = failed["response"]
    assert (error["type"], error["code"], response["error"]["code"]) == ("error", code, "server_error")
    assert (failed["type"], response["status"]) == ("response.failed", "failed")
    assert response["id"] == events[0]["response"]["id"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    error = events_of(chat)[-1]["error"]
    assert (error["code"], error["type"], "[DONE]" in chat.text) == (code, "server_error", False)


def test_unexpected_error_during_a_stream_ends_it_with_an_error_event_and_is_logged(
    knowing: Daemon, door: str, caplog: pytest.LogCaptureFixture
) -> None:
    def breaking(shown: str) -> str:
        knowing.write(lambda connection: connection.execute("ALTER TABLE sources RENAME COLUMN tags TO gone"))
        return answer_correctly(shown)

    knowing.stop()
    try:
        with chatting(answering(breaking)) as server, knowing.writing(server.url("/v1")):
            answer = send(knowing, door, VACATION, stream=True, buckets=["inbox"])
    finally:
        knowing.write(lambda connection: connection.execute("ALTER TABLE sources RENAME COLUMN gone TO tags"))
        knowing.start()
    errors = [each for each in events_of(answer) if each.get("type") == "error" or "error" in each]
    assert [each.get("code") or each["error"]["code"] for each in errors] == ["internal_error"]
    assert ("Traceback" in caplog.text, "Traceback" in answer.text) == (True, False)


@pytest.mark.parametrize("text", ["They get 30 days of", ""])
@pytest.mark.parametrize(("cut", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_answer_cut_short_by_the_model_is_incomplete(knowing: Daemon, cut: str, reason: str, text: str) -> None:
    script = streaming(saying(text, reason=cut))
    with chatting(script) as server, knowing.writing(server.url("/v1")):
        answer, events = ask(knowing, VACATION), stream(knowing, VACATION)
        chat, chunks = ask(knowing, VACATION, CHAT), stream(knowing, VACATION, CHAT)
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert (answer["output"][0]["status"], text_of(answer), answer["grounded"]) == ("incomplete", text, False)
    last = events[-1]
    assert (last["type"], last["response"]["incomplete_details"]) == ("response.incomplete", {"reason": reason})
    assert [each["choices"][0]["finish_reason"] for each in (chat, chunks[-1])] == [cut, cut]


def test_token_usage_is_that_reported_by_the_model_server(knowing: Daemon) -> None:
    script = streaming(saying("They get 30 days [1].", usage={"prompt_tokens": 70, "completion_tokens": 7}))
    with chatting(script) as server, knowing.writing(server.url("/v1")):
        usage = ask(knowing, VACATION)["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (70, 7, 77)
