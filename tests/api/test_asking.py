"""Answers at both doors: words of the sources with their places, or that nothing was found."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from svc_daemon.core.search.agents import EVERYTHING
from tests.api.answers import body_of, details_of, refused_param
from tests.api.asking import (
    CHAT,
    DOORS,
    HANDBOOK,
    RESPONSES,
    annotations_of,
    ask,
    events_of,
    send,
    stream,
    text_of,
    without_ids,
)
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.test_agent_scopes import add_agent, bucket_id, default_policy

VACATION = "How many vacation days do full-time employees get?"
ANSWER = "Full-time employees get 30 days of vacation a year. [1]"
#: Two in one, each answered by another passage: either has half of its words.
TWO_IN_ONE = "When does the garage open, and to whom go requests for vacation?"
OFF_TOPIC = "Which walrus won the chess tournament in Mongolia?"


@pytest.fixture(scope="module")
def knowing(shared: Daemon) -> Iterator[Daemon]:
    """A daemon that has read the handbook."""
    shared.start()
    shared.add_ready(HANDBOOK, filename="handbook.md")
    shared.make_bucket("empty")
    yield shared
    shared.stop()


def content_with_half(daemon: Daemon) -> str:
    """An agent to which a passage with a part of the question's words will do."""
    return add_agent(daemon, "content", bucket_ids=("*",), score_threshold=0.3)


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_is_the_sources_own_words(knowing: Daemon, door: str) -> None:
    answer = ask(knowing, VACATION, door)
    assert text_of(answer) == ANSWER
    assert answer["grounded"] is True
    (source,) = answer["sources"]
    stored = body_of(knowing.ask("GET", f"/v1/sources/{source['source_id']}/text"))["text"]
    place = source["location"]
    assert source["quote"] == stored[place["char_start"] : place["char_end"]]
    assert source["quote"] == "Full-time employees get 30 days of vacation a year."
    assert (place["line_start"], place["line_end"], place["headings"]) == (5, 5, ["Handbook", "Vacation"])
    assert (source["filename"], source["number"], source["score"] > 0.3) == ("handbook.md", 1, True)


@pytest.mark.parametrize("door", DOORS)
def test_each_mark_has_an_annotation_that_leads_to_its_source(knowing: Daemon, door: str) -> None:
    answer = ask(knowing, TWO_IN_ONE, door, model=content_with_half(knowing))
    text, annotations = text_of(answer), annotations_of(answer)
    assert len(annotations) == len(answer["sources"]) == 2
    for annotation, source in zip(annotations, answer["sources"], strict=True):
        assert annotation["type"] == "file_citation"
        assert text[annotation["index"] :].startswith(f"[{annotation['number']}]")
        assert (annotation["file_id"], annotation["filename"]) == (source["source_id"], source["filename"])
        assert (annotation["quote"], annotation["location"]) == (source["quote"], source["location"])


@pytest.mark.parametrize("door", DOORS)
def test_nothing_found_says_so(knowing: Daemon, door: str) -> None:
    answer = ask(knowing, OFF_TOPIC, door)
    assert (answer["grounded"], answer["sources"], annotations_of(answer)) == (False, [], [])
    assert text_of(answer) == "I found nothing about this in the sources."


def test_what_scores_less_than_the_policy_wants_is_not_found(knowing: Daemon) -> None:
    picky = add_agent(knowing, "picky", bucket_ids=("*",), score_threshold=1.0)
    half = "How many vacation days do walruses get?"
    assert ask(knowing, half, model=content_with_half(knowing))["grounded"] is True
    assert ask(knowing, half)["grounded"] is False
    assert ask(knowing, half, model=picky)["grounded"] is False
    assert ask(knowing, "days of vacation", model=picky)["grounded"] is True


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("policy", ["{", "null", '{"scope": "team"}'])
def test_a_default_agent_whose_policy_is_broken_knows_nothing(knowing: Daemon, door: str, policy: str) -> None:
    breaking = "UPDATE agents SET policy = ? WHERE id = 'default' AND team_id = ?"
    with default_policy(knowing, EVERYTHING):
        knowing.write(lambda connection: connection.execute(breaking, (policy, knowing.team_id)))
        answer = ask(knowing, VACATION, door)
        assert (answer["grounded"], answer["sources"]) == (False, [])
        (warning,) = answer["warnings"]
        assert warning.startswith("The agent 'default' finds nothing: its stored policy is broken.")
    assert ask(knowing, VACATION, door)["grounded"] is True


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("model", ["svc-agent", "svc-rag-agent", "svc-agent:default", "svc-rag-agent:default"])
def test_the_model_is_told_as_it_was_sent(knowing: Daemon, door: str, model: str) -> None:
    assert ask(knowing, VACATION, door, model=model)["model"] == model
    told = stream(knowing, VACATION, door, model=model)
    models = {each.get("model") or each["response"]["model"] for each in told if "model" in each or "response" in each}
    assert models == {model}


def test_a_stream_tells_the_answer_in_the_order_that_clients_rely_on(knowing: Daemon) -> None:
    events = stream(knowing, TWO_IN_ONE, model=content_with_half(knowing))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_stream_tells_the_same_as_the_plain_answer(knowing: Daemon) -> None:
    events, plain = stream(knowing, VACATION), ask(knowing, VACATION)
    whole = events[-1]["response"]
    assert without_ids(whole) == without_ids(plain)
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == text_of(whole)
    told = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    assert [event["annotation"] for event in told] == annotations_of(whole)
    assert [event["annotation_index"] for event in told] == list(range(len(told)))


def test_a_stream_is_about_one_response_and_one_message(knowing: Daemon) -> None:
    events = stream(knowing, VACATION)
    responses = [event["response"] for event in events if "response" in event]
    assert len({response["id"] for response in responses}) == 1
    assert [response["status"] for response in responses] == ["in_progress", "in_progress", "completed"]
    assert [response["grounded"] for response in responses] == [None, None, True]
    messages = {event.get("item_id") or event["item"]["id"] for event in events if "output_index" in event}
    assert messages == {responses[-1]["output"][0]["id"]}


def test_a_chat_stream_tells_the_same_as_the_plain_answer(knowing: Daemon) -> None:
    chunks, plain = stream(knowing, VACATION, CHAT), ask(knowing, VACATION, CHAT)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert "".join(delta.get("content", "") for delta in deltas) == text_of(plain)
    assert deltas[-1] == {"annotations": annotations_of(plain)}
    assert (chunks[-1]["grounded"], chunks[-1]["sources"]) == (plain["grounded"], plain["sources"])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all(chunk["id"].startswith("chatcmpl-") for chunk in chunks)
    assert not any("usage" in chunk for chunk in chunks)


def test_a_chat_stream_ends_with_done_and_with_usage_where_it_was_asked_for(knowing: Daemon) -> None:
    answer = send(knowing, CHAT, VACATION, stream=True, stream_options={"include_usage": True})
    assert answer.text.endswith("data: [DONE]\n\n")
    *chunks, last = events_of(answer)
    assert {chunk["usage"] for chunk in chunks} == {None}
    assert last["choices"] == []
    assert last["usage"] == ask(knowing, VACATION, CHAT)["usage"]


@pytest.mark.parametrize("door", DOORS)
def test_a_stream_that_finds_nothing_says_so(knowing: Daemon, door: str) -> None:
    last = stream(knowing, OFF_TOPIC, door)[-1]
    told = last.get("response", last)
    assert (told["grounded"], told["sources"]) == (False, [])


@pytest.mark.parametrize("door", DOORS)
def test_what_the_search_has_to_say_is_told_with_the_answer(knowing: Daemon, door: str) -> None:
    agent = add_agent(knowing, "narrow", bucket_ids=(bucket_id(knowing, "inbox"),))
    asked = {"model": agent, "buckets": ["inbox", "empty"]}
    answer, last = ask(knowing, VACATION, door, **asked), stream(knowing, VACATION, door, **asked)[-1]
    for told in (answer, last.get("response", last)):
        assert told["warnings"] == ["The agent does not search the bucket 'empty'; it was left out."]
        assert told["grounded"] is True
    assert ask(knowing, VACATION, door)["warnings"] == []


def test_a_follow_up_is_searched_with_what_came_before(knowing: Daemon) -> None:
    follow_up = "and for part-time staff?"
    turns = [{"role": "user", "content": VACATION}, {"role": "assistant", "content": ANSWER}]
    answer = ask(knowing, "", input=[*turns, {"role": "user", "content": follow_up}])
    assert text_of(answer) == "Part-time staff get 15 days of vacation. [1]"
    chat = ask(knowing, "", CHAT, messages=[*turns, {"role": "user", "content": follow_up}])
    assert text_of(chat) == text_of(answer)


LIBRARY = b"# Opening hours\n\nThe library opens at nine. On Sundays it opens at eleven.\n"
TALKS = [
    (
        "When does the library open on weekdays in the summer holidays?",
        "and on Sundays?",
        "On Sundays it opens at eleven.",
    ),
    ("Which walrus won the chess tournament?", "and who was second in Mongolia?", "I found nothing"),
    ("Who flew the zeppelin at nine?", "Why?", "I found nothing"),
]


@pytest.mark.parametrize(("first", "follow_up", "told"), TALKS)
def test_words_of_an_earlier_question_do_not_starve_a_follow_up(
    knowing: Daemon, first: str, follow_up: str, told: str
) -> None:
    if "library" not in knowing.ask("GET", "/v1/buckets").text:
        knowing.make_bucket("library")
        knowing.add_ready(LIBRARY, filename="library.md", bucket="library")
    turns = [{"role": "user", "content": text} for text in (first, follow_up)]
    assert told in text_of(ask(knowing, "", input=turns, buckets=["library"]))


def test_the_output_of_one_answer_can_be_sent_with_the_next_question(knowing: Daemon) -> None:
    first = ask(knowing, VACATION)
    asked = {"role": "user", "content": [{"type": "input_text", "text": VACATION}]}
    answer = ask(knowing, "", input=[asked, *first["output"], {"role": "user", "content": "and part-time staff?"}])
    assert "15 days" in text_of(answer)


def test_buckets_narrow_where_an_answer_comes_from(knowing: Daemon) -> None:
    assert ask(knowing, VACATION, buckets=["inbox"])["grounded"] is True
    details_of(send(knowing, RESPONSES, VACATION, buckets=["empty"]), "bucket_store_indexing_pending")


def test_what_the_caller_sent_comes_back(knowing: Daemon) -> None:
    sent: dict[str, Any] = {"instructions": "Be brief.", "metadata": {"a": "b"}, "user": "u"}
    answer = ask(knowing, VACATION, **sent)
    assert {name: answer[name] for name in sent} == sent
    assert (answer["store"], answer["previous_response_id"], answer["status"]) == (False, None, "completed")


def test_words_are_counted_where_no_model_counts_tokens(knowing: Daemon) -> None:
    usage = ask(knowing, VACATION)["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (8, 10, 18)
    assert ask(knowing, VACATION, CHAT)["usage"] == {"prompt_tokens": 8, "completion_tokens": 10, "total_tokens": 18}


IGNORED: list[dict[str, Any]] = [
    {"temperature": 0.7, "top_p": 1, "user": "u", "store": True, "seed": 5},
    {"tools": [{"type": "file_search", "vector_store_ids": None}], "tool_choice": "auto"},
    {"reasoning": {"effort": "low"}, "service_tier": "auto", "safety_identifier": "x"},
    {"max_output_tokens": 5, "max_tokens": 5, "logprobs": True, "stop": ["."], "n": None},
    {"text": {"format": {"type": "text"}}, "response_format": {"type": "text"}, "previous_response_id": None},
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("fields", IGNORED)
def test_what_openai_takes_besides_changes_nothing(knowing: Daemon, door: str, fields: dict[str, Any]) -> None:
    assert text_of(ask(knowing, VACATION, door, **fields)) == ANSWER


#: A body, and the field that it is refused for.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (RESPONSES, {"model": None}, "model"),
    (RESPONSES, {"model": ""}, "model"),
    (RESPONSES, {"input": None}, "input"),
    (RESPONSES, {"input": 5}, "input"),
    (RESPONSES, {"input": " "}, "input"),
    (RESPONSES, {"input": []}, "input"),
    (RESPONSES, {"input": "x" * 10_001}, "input"),
    (RESPONSES, {"input": [{"role": "assistant", "content": "x"}]}, "input"),
    (RESPONSES, {"input": [{"role": "king", "content": "x"}]}, "input.0.role"),
    (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content.0.type"),
    (
        RESPONSES,
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]},
        "input.0.content.0.text",
    ),
    (RESPONSES, {"input": [{"type": "function_call_output", "role": "user", "content": "x"}]}, "input.0.type"),
    (RESPONSES, {"temperature": "hot"}, "temperature"),
    (RESPONSES, {"stream": "yes"}, "stream"),
    (RESPONSES, {"metadata": {"a": 1}}, "metadata.a"),
    (RESPONSES, {"buckets": "inbox"}, "buckets"),
    (RESPONSES, {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools.0.vector_store_ids"),
    (CHAT, {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools.0.vector_store_ids"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id"),
    (RESPONSES, {"conversation": "conv_1"}, "conversation"),
    (RESPONSES, {"background": True}, "background"),
    (RESPONSES, {"text": {"format": {"type": "json_schema"}}}, "text.format.type"),
    (CHAT, {"messages": None}, "messages"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": "hello"}, "messages"),
    (CHAT, {"messages": [{"role": "system", "content": "x"}]}, "messages"),
    (CHAT, {"messages": [{"role": "user"}]}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0.type"),
    (CHAT, {"n": 2}, "n"),
    (CHAT, {"response_format": {"type": "json_object"}}, "response_format.type"),
    (CHAT, {"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
]


def test_what_makes_no_sense_is_refused_by_its_name(shared: Daemon) -> None:
    for (door, fields, param), streams in product(REFUSED, [False, True]):
        assert refused_param(send(shared, door, VACATION, **{"stream": streams, **fields})) == param


def test_an_empty_question_is_told_as_one(shared: Daemon) -> None:
    for question, door in product(["", " \n"], DOORS):
        assert "ends with an empty question" in send(shared, door, question).text


@pytest.mark.parametrize("door", DOORS)
def test_an_error_before_the_first_word_of_a_stream_is_a_plain_one(knowing: Daemon, door: str) -> None:
    details_of(send(knowing, door, VACATION, stream=True, model="gpt-9"), "model_not_found")
    details_of(send(knowing, door, VACATION, stream=True, model="svc-agent:nobody"), "agent_not_found")


def test_no_answer_is_kept(shared: Daemon) -> None:
    for method in ["GET", "DELETE"]:
        details_of(shared.ask(method, "/v1/responses/resp_1"), "not_found")


def test_another_teams_sources_answer_nobody_else(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    daemon.add_ready(HANDBOOK)
    assert ask(daemon, VACATION)["grounded"] is True
    assert ask(daemon, VACATION, key=daemon.add_team())["grounded"] is False
