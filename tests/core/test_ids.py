"""Tests that ids have the prefix of their kind and sort by creation time; and model ids."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core import ids
from svc_daemon.core.ids import Ids, agent_of, is_allowed, is_id, is_model_spelling
from svc_daemon.errors import NotFound

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))
PAUSES = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=900))


def _ids(moment: datetime, random: bytes = bytes(10)) -> Ids:
    return Ids(now=lambda: moment, random=lambda size: random[:size])


def test_an_id_is_its_prefix_and_26_lower_case_characters() -> None:
    made = _ids(START).make(ids.SOURCE)
    assert re.fullmatch("src_[0123456789abcdefghjkmnpqrstvwxyz]{26}", made), made


def test_the_random_part_is_80_of_the_given_bits() -> None:
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return b"\xff" * size

    made = Ids(now=lambda: START, random=random).make(ids.TASK)
    assert (asked, made[-16:]) == ([10], "z" * 16)
    assert made != _ids(START).make(ids.TASK)


@given(MOMENTS, PAUSES, st.binary(min_size=20))
def test_an_id_of_a_later_millisecond_sorts_later(moment: datetime, pause: timedelta, random: bytes) -> None:
    earlier = _ids(moment, random[:10]).make(ids.SOURCE)
    later = _ids(moment + pause, random[10:20]).make(ids.SOURCE)
    assert earlier[:14] < later[:14] or (earlier[:14] == later[:14] and pause < timedelta(milliseconds=2))


def test_ids_created_together_are_in_order_and_differ_in_a_short_prefix() -> None:
    made = _ids(START, random=b"\xff" * 10).make_many(ids.SOURCE, 3000)
    assert made == sorted(made)
    assert len({each[:18] for each in made}) == 3000
    assert {(len(each), each[:14], each[18:]) for each in made} == {(30, made[0][:14], "z" * 12)}


def test_a_kind_is_its_prefix_and_an_underscore() -> None:
    for text in ["src_1", "src", "srcs_1", "bkt_1", "xsrc_1", ""]:
        assert is_id(text, ids.SOURCE) is (text == "src_1"), text
    prefixes = [ids.TEAM, ids.BUCKET, ids.SOURCE, ids.TASK, ids.KEY, ids.REQUEST, ids.INSTALLATION]
    assert len(set(prefixes)) == len(prefixes)


@pytest.mark.rule("model.spellings", "version.models")
def test_both_spellings_of_a_model_name_the_agent() -> None:
    for model, agent_id in [
        *(("svc-agent", "default"), ("svc-rag-agent", "default"), ("svc-agent:sales", "sales")),
        *(("svc-rag-agent:sales", "sales"), ("svc-agent:a:b", "a:b")),
    ]:
        assert agent_of(model) == agent_id, model
    for model in ["", "gpt-5", "svc-agent:", "svc-agents", "SVC-AGENT", ":svc-agent"]:
        with pytest.raises(NotFound) as refused:
            agent_of(model)
        assert refused.value.code == "model_not_found", model


@pytest.mark.parametrize("agent_id", ["svc-agent", "svc-rag-agent", "SVC-Agent", "svc-agents", "default"])
def test_a_spelling_of_a_model_is_not_an_agent_id(agent_id: str) -> None:
    assert is_model_spelling(agent_id) is (agent_id not in ("svc-agents", "default"))


@pytest.mark.parametrize(
    ("models", "agent_id", "allowed"),
    [
        *((None, "sales", True), ((), "default", False), (("svc-agent",), "sales", False)),
        *((("svc-agent",), "default", True), (("svc-rag-agent",), "default", True)),
        *((("svc-rag-agent:default",), "default", True), (("svc-agent:sales", "svc-agent:b"), "sales", True)),
    ],
)
def test_a_list_of_models_allows_their_agents(models: tuple[str, ...] | None, agent_id: str, allowed: bool) -> None:
    assert is_allowed(models, agent_id) is allowed
