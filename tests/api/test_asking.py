"""Answers at both doors: words of the sources with their places, or that nothing was found."""

import re
from itertools import product
from typing import Any

import pytest

from tests.api.agents import agent_of, store_agent
from tests.api.answers import details_of, refused_param
from tests.api.asking import CHAT, DOORS, RESPONSES, annotations_of, ask, events_of, send, stream, text_of, without_ids
from tests.api.daemons import Daemon

VACATION = "How many vacation days do full-time employees get?"
ANSWER = "Full-time employees get 30 days of vacation a year. [1]"
#: Two in one, each answered by another passage: either has half of its words.
TWO_IN_ONE = "When does the garage open, and to whom go requests for vacation?"
OFF_TOPIC = "Which walrus won the chess tournament in Mongolia?"


def content_with_half(daemon: Daemon) -> str:
    """An agent to which a passage with a part of the question's words will do."""
    return store_agent(daemon, "content", bucket_ids=("*",), score_threshold=0.3)


@pytest.mark.rule("agents.responses", "agents.chat")
@pytest.mark.parametrize("door", DOORS)
def test_an_answer_is_the_sources_own_words(knowing: Daemon, door: str) -> None:
    answer = ask(knowing, VACATION, door)
    (source,) = answer["sources"]
    assert (text_of(answer), answer["grounded"], answer["warnings"]) == (ANSWER, True, [])
    stored = knowing.show(f"/v1/sources/{source['source_id']}/text")["text"]
    place = source["location"]
    assert source["quote"] == stored[place["char_start"] : place["char_end"]] == ANSWER.removesuffix(" [1]")
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
        assert annotation["file_id"] == source["source_id"]
        assert all(annotation[name] == source[name] for name in ("filename", "quote", "location"))


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_without_sources_reports_it(knowing: Daemon, door: str) -> None:
    answer, last = ask(knowing, OFF_TOPIC, door), stream(knowing, OFF_TOPIC, door)[-1]
    assert (text_of(answer), annotations_of(answer)) == ("I found nothing about this in the sources.", [])
    for shown in (answer, last.get("response", last)):
        assert (shown["grounded"], shown["sources"]) == (False, [])


@pytest.mark.parametrize("door", DOORS)
def test_what_is_not_there_is_named_and_the_nearest_is_related(working: Daemon, door: str) -> None:
    text = b"# Contracts\n\n## Contract 6\n\nThe notice period is 30 days.\n"
    working.wait_ready(working.add_source(text, filename="contracts.md"))
    asked = "What is the notice period of contract 61?"
    answer, last = ask(working, asked, door), stream(working, asked, door)[-1]
    for shown in (answer, last.get("response", last)):
        assert (shown["grounded"], shown["sources"], shown["unmatched"]) == (False, [], ["contract 61"])
        (related,) = shown["related"]
        assert [related["quote"], *related["location"]["headings"][1:]] == [
            "The notice period is 30 days.",
            "Contract 6",
        ]
    right = ask(working, asked.replace("61", "6"), door)
    assert (right["grounded"], right["unmatched"], right["related"]) == (True, [], [])


def test_what_scores_less_than_the_policy_wants_is_not_found(knowing: Daemon) -> None:
    picky = store_agent(knowing, "picky", bucket_ids=("*",), score_threshold=1.0)
    half = "How many vacation days do walruses get?"
    assert ask(knowing, half, model=content_with_half(knowing))["grounded"] is True
    assert [ask(knowing, half)["grounded"], ask(knowing, half, model=picky)["grounded"]] == [True, False]
    assert ask(knowing, "days of vacation", model=picky)["grounded"] is True


@pytest.mark.rule("model.echo")
@pytest.mark.parametrize(
    ("door", "model"), [*product(DOORS, ("svc-agent", "svc-rag-agent", "svc-agent:default", "svc-rag-agent:default"))]
)
def test_the_model_is_returned_as_it_was_sent(knowing: Daemon, door: str, model: str) -> None:
    assert ask(knowing, VACATION, door, model=model)["model"] == model
    events = [event.get("response", event) for event in stream(knowing, VACATION, door, model=model)]
    assert {event["model"] for event in events if "model" in event} == {model}


@pytest.mark.rule("agents.responses")
def test_a_stream_has_its_events_in_the_order_that_clients_rely_on(knowing: Daemon) -> None:
    events = stream(knowing, TWO_IN_ONE, model=content_with_half(knowing))
    cited = ["output_text.delta", "output_text.annotation.added"]
    before = ["created", "in_progress", "output_item.added", "content_part.added"]
    after = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert [event["type"].removeprefix("response.") for event in events] == [*before, *cited, *cited, *after]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_a_stream_carries_the_same_as_the_plain_answer(knowing: Daemon) -> None:
    events, plain = stream(knowing, VACATION), ask(knowing, VACATION)
    whole = events[-1]["response"]
    assert without_ids(whole) == without_ids(plain)
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == text_of(whole)
    added = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    assert [event["annotation"] for event in added] == annotations_of(whole)
    assert [event["annotation_index"] for event in added] == list(range(len(added)))
    responses = [event["response"] for event in events if "response" in event]
    assert len({response["id"] for response in responses}) == 1
    steps = [(response["status"], response["grounded"]) for response in responses]
    assert steps == [("in_progress", None), ("in_progress", None), ("completed", True)]
    messages = {event.get("item_id") or event["item"]["id"] for event in events if "output_index" in event}
    assert messages == {whole["output"][0]["id"]}


@pytest.mark.rule("agents.chat")
def test_a_chat_stream_carries_the_same_as_the_plain_answer(knowing: Daemon) -> None:
    chunks, plain = stream(knowing, VACATION, CHAT), ask(knowing, VACATION, CHAT)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert "".join(delta.get("content", "") for delta in deltas) == text_of(plain)
    assert deltas[-1] == {"annotations": annotations_of(plain)}
    assert (chunks[-1]["grounded"], chunks[-1]["sources"]) == (plain["grounded"], plain["sources"])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    (answer_id,) = {chunk["id"] for chunk in chunks}
    assert answer_id.startswith("chatcmpl-")
    assert not any("usage" in chunk for chunk in chunks)
    answer = send(knowing, CHAT, VACATION, stream=True, stream_options={"include_usage": True})
    assert answer.text.endswith("data: [DONE]\n\n")
    *chunks, last = events_of(answer)
    assert {chunk["usage"] for chunk in chunks} == {None}
    assert (last["choices"], last["usage"]) == ([], plain["usage"])


def test_the_warnings_of_the_search_come_with_the_answer(knowing: Daemon) -> None:
    asked: dict[str, Any] = {"model": agent_of(knowing, "inbox"), "buckets": ["inbox", "empty"]}
    for door in DOORS:
        answer, last = ask(knowing, VACATION, door, **asked), stream(knowing, VACATION, door, **asked)[-1]
        for shown in (answer, last.get("response", last)):
            assert shown["warnings"] == ["The agent does not search the bucket 'empty'; it was left out."]
            assert shown["grounded"] is True


def test_a_follow_up_is_searched_with_what_came_before(knowing: Daemon) -> None:
    turns = [{"role": "user", "content": VACATION}, {"role": "assistant", "content": ANSWER}]
    turns.append({"role": "user", "content": "and for part-time staff?"})
    for door, name in ((RESPONSES, "input"), (CHAT, "messages")):
        assert text_of(ask(knowing, "", door, **{name: turns})) == "Part-time staff get 15 days of vacation. [1]"
    asked = {"role": "user", "content": [{"type": "input_text", "text": VACATION}]}
    output = ask(knowing, VACATION)["output"]
    assert "15 days" in text_of(ask(knowing, "", input=[asked, *output, turns[-1]]))


#: Two questions, the second a follow-up, and what is answered to it.
TALKS = [
    ("When does the library open on weekdays in summer?", "and on Sundays?", "On Sundays it opens at eleven."),
    ("Which walrus won the chess tournament?", "and who was second in Mongolia?", "I found nothing"),
    ("Who flew the zeppelin over Lake Constance?", "Why?", "I found nothing"),
]


def test_words_of_an_earlier_question_do_not_starve_a_follow_up(knowing: Daemon) -> None:
    knowing.make_bucket("library")
    library = b"# Opening hours\n\nThe library opens at nine. On Sundays it opens at eleven.\n"
    knowing.add_ready(library, filename="library.md", bucket="library")
    for first, follow_up, expected in TALKS:
        turns = [{"role": "user", "content": text} for text in (first, follow_up)]
        assert expected in text_of(ask(knowing, "", input=turns, buckets=["library"])), first


def test_what_the_caller_sent_comes_back_and_no_answer_is_kept(knowing: Daemon) -> None:
    sent: dict[str, Any] = {"instructions": "Be brief.", "metadata": {"a": "b"}, "user": "u"}
    answer = ask(knowing, VACATION, **sent)
    expected = {**sent, "store": False, "previous_response_id": None, "status": "completed"}
    assert {name: answer[name] for name in expected} == expected
    for method in ("GET", "DELETE"):
        details_of(knowing.ask(method, f"/v1/responses/{answer['id']}"), "not_found")


@pytest.mark.parametrize(
    ("door", "asked", "answered"), ((RESPONSES, "input", "output"), (CHAT, "prompt", "completion"))
)
def test_words_are_counted_where_no_model_counts_tokens(knowing: Daemon, door: str, asked: str, answered: str) -> None:
    expected = {f"{asked}_tokens": 8, f"{answered}_tokens": 10, "total_tokens": 18}
    usage = ask(knowing, VACATION, door)["usage"]
    assert {name: usage[name] for name in expected} == expected


FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"bucket": {"type": "string"}}}}
IGNORED: list[dict[str, Any]] = [
    {"temperature": 0.7, "top_p": 1, "user": "u", "store": True, "seed": 5},
    {"tools": [{"type": "file_search", "vector_store_ids": None}, {"type": "file_search"}], "tool_choice": "auto"},
    {"tools": [{"type": "function", **FUNCTION}, {"type": "function", "function": FUNCTION}], "store": True},
    {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}], "metadata": {"bucket": "left"}},
    {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["x"]}}]},
    {"reasoning": {"effort": "low"}, "service_tier": "auto", "safety_identifier": "x"},
    {"max_output_tokens": 5, "max_tokens": 5, "logprobs": True, "stop": ["."], "n": None},
    {"text": {"format": {"type": "text"}}, "response_format": {"type": "text"}, "previous_response_id": None},
]


@pytest.mark.parametrize(("door", "fields"), [*product(DOORS, IGNORED)])
def test_what_openai_takes_besides_changes_nothing(knowing: Daemon, door: str, fields: dict[str, Any]) -> None:
    assert text_of(ask(knowing, VACATION, door, **fields)) == ANSWER


def turn(content: Any, role: str = "user", **fields: Any) -> list[dict[str, Any]]:
    """A conversation of one turn."""
    return [{"role": role, "content": content, **fields}]


#: By door, fields of a body, and the field that it is refused for.
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    RESPONSES: [
        *(({"model": each}, "model") for each in (None, "")),
        *(({"input": each}, "input") for each in (None, 5, " ", [], "x" * 10_001, turn("x", "assistant"))),
        ({"input": turn("x", "king")}, "input.0.role"),
        ({"input": turn([{"type": "input_image"}])}, "input.0.content.0.type"),
        ({"input": turn([{"type": "input_text", "text": 5}])}, "input.0.content.0.text"),
        ({"input": turn("x", type="function_call_output")}, "input.0.type"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"buckets": "inbox"}, "buckets"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools.0.vector_store_ids"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.type"),
    ],
    CHAT: [
        *(({"messages": each}, "messages") for each in (None, [], "hello", turn("x", "system"), [{"role": "user"}])),
        ({"messages": turn([{"type": "image_url"}])}, "messages.0.content.0.type"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools.0.vector_store_ids"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
    ],
}


@pytest.mark.rule("agents.responses", "agents.chat")
@pytest.mark.parametrize(("door", "streams"), [*product(DOORS, (False, True))])
def test_what_makes_no_sense_is_refused_by_its_name(shared: Daemon, door: str, streams: bool) -> None:
    for fields, param in REFUSED[door]:
        assert refused_param(send(shared, door, VACATION, **{"stream": streams, **fields})) == param, fields
        if param == "background":
            assert "must be false" in send(shared, door, VACATION, **fields).text
    for empty in ("", " \n"):
        assert "ends with an empty question" in send(shared, door, empty, stream=streams).text


#: A fresh team's few documents, of a sentence or two.
DOCUMENTS = {
    "lamp.txt": "The lamp is painted turquoise.",
    "ferry.txt": "The ferry to the island leaves at half past six. A ticket for a bicycle costs four euros.",
    "bees.txt": "Nadia keeps the bees behind the orchard. She takes the honey in July.",
    "roof.txt": "A firm from Umbertown repaired the roof last spring.",
    "oven.txt": "The oven door sticks: lift it a little, then pull. Its light has been broken since May.",
    "pottery.txt": "The pottery class has room for nine people. The manual of the kiln was written by Tomas Berg.",
}
#: Questions, with a word of the sentence that answers each.
ON_THEM = {
    "What colour is the lamp?": "turquoise",
    "what is the color of the lamp": "turquoise",
    "When does the ferry leave?": "half past six",
    "How much is a ticket for a bicycle?": "four euros",
    "Where are the bees kept?": "orchard",
    "When do we get honey?": "July",
    "Who repaired the roof?": "Umbertown",
    "How do I open the oven door?": "pull",
    "How many people can join the pottery class?": "nine",
    "Who wrote the manual of the kiln?": "Tomas Berg",
}
NOT_ON_THEM = """Who won the football match last night? What is the capital of Mongolia? How old is the roof?
How do I change a tyre in the rain? How long do I bake bread in the oven? How many bees are there?
Which insurance covers broken windows? Where can I park my car near the museum?
What does the teacher of the yoga lessons earn? Does the printer need a new cartridge?"""


def test_the_first_questions_on_a_few_documents_are_answered_and_others_not(working: Daemon) -> None:
    working.wait_ready(*(working.add_source(text.encode(), filename=name) for name, text in DOCUMENTS.items()))
    for question, word in ON_THEM.items():
        answer = ask(working, question)
        assert answer["grounded"] is True, question
        assert any(word in source["quote"] for source in answer["sources"]), question
    for question in re.findall(r"\w[^?]+\?", NOT_ON_THEM):
        answer = ask(working, question)
        assert (answer["grounded"], answer["sources"]) == (False, []), question


@pytest.mark.parametrize(
    ("door", "fields", "named"),
    [
        (RESPONSES, {"temperature": 0.5, "max_output_tokens": 9, "top_p": 1}, "temperature, top_p, max_output_tokens"),
        (RESPONSES, {"instructions": "Rhyme."}, "instructions"),
        (CHAT, {"max_tokens": 9}, "max_tokens"),
        (CHAT, {"max_completion_tokens": 9, "temperature": 0}, "temperature, max_completion_tokens"),
        (CHAT, {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required"}, "tools"),
        (RESPONSES, {"tools": [{"type": "file_search"}, {"type": "function", **FUNCTION}]}, "tools"),
    ],
)
def test_parameters_without_effect_are_named_in_the_warnings(
    knowing: Daemon, door: str, fields: dict[str, Any], named: str
) -> None:
    warning = f"Without effect: {named}; no language model writes the answers here."
    assert ask(knowing, VACATION, door, **fields)["warnings"] == [warning]


@pytest.mark.parametrize("door", DOORS)
def test_fields_that_no_question_has_are_named_in_the_warnings(knowing: Daemon, door: str) -> None:
    openais = {"service_tier": "auto", "seed": 5, "tool_choice": "auto"}
    warning = "A question has no such field, so this had no effect: max_num_results, top_k."
    assert ask(knowing, VACATION, door, top_k=3, max_num_results=5, **openais)["warnings"] == [warning]


@pytest.mark.parametrize("door", DOORS)
def test_tool_that_searches_files_is_no_tool_without_effect(knowing: Daemon, door: str) -> None:
    assert ask(knowing, VACATION, door, tools=[{"type": "file_search"}])["warnings"] == []
