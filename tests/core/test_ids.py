"""Ids name their kind and sort by the time they were made."""

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
    prefix, _, rest = made.partition("_")
    assert (prefix, len(rest), made) == ("src", 26, made.lower())
    assert set(rest) <= set("0123456789abcdefghjkmnpqrstvwxyz")


def test_the_random_part_is_80_bits_of_what_was_given() -> None:
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return b"\xff" * size

    made = Ids(now=lambda: START, random=random).make(ids.TASK)
    assert asked == [10]
    assert made.endswith("z" * 16)
    assert made != _ids(START).make(ids.TASK)


@given(MOMENTS, PAUSES, st.binary(min_size=20))
def test_a_later_millisecond_sorts_later_whatever_the_random_part(
    moment: datetime, pause: timedelta, random: bytes
) -> None:
    earlier = _ids(moment, random[:10]).make(ids.SOURCE)
    later = _ids(moment + pause, random[10:20]).make(ids.SOURCE)
    assert earlier[:14] < later[:14] or (earlier[:14] == later[:14] and pause < timedelta(milliseconds=2))


def test_kinds_are_told_by_prefix_and_underscore() -> None:
    table = {
        ("src_1", ids.SOURCE): True,
        ("src", ids.SOURCE): False,
        ("srcs_1", ids.SOURCE): False,
        ("bkt_1", ids.SOURCE): False,
        ("xsrc_1", ids.SOURCE): False,
        ("", ids.SOURCE): False,
    }
    assert {cell: is_id(*cell) for cell in table} == table


def test_no_two_kinds_share_a_prefix() -> None:
    prefixes = [ids.TEAM, ids.BUCKET, ids.SOURCE, ids.TASK, ids.KEY, ids.REQUEST, ids.INSTALLATION]
    assert len(set(prefixes)) == len(prefixes)


def test_both_spellings_name_an_agent() -> None:
    for model, agent_id in [
        ("svc-agent", "default"),
        ("svc-rag-agent", "default"),
        ("svc-agent:sales", "sales"),
        ("svc-rag-agent:sales", "sales"),
        ("svc-agent:a:b", "a:b"),
    ]:
        assert agent_of(model) == agent_id


def test_anything_else_is_no_model_of_ours() -> None:
    for model in ["", "gpt-5", "svc-agent:", "svc-agents", "SVC-AGENT", ":svc-agent"]:
        with pytest.raises(NotFound) as refused:
            agent_of(model)
        assert refused.value.code == "model_not_found"


def test_a_models_own_spelling_is_no_id() -> None:
    for agent_id, is_one in [
        ("svc-agent", True),
        ("svc-rag-agent", True),
        ("SVC-Agent", True),
        ("svc-agents", False),
        ("default", False),
    ]:
        assert is_model_spelling(agent_id) is is_one


def test_a_list_of_models_allows_their_agents() -> None:
    for models, agent_id, allowed in [
        (None, "sales", True),
        ((), "default", False),
        (("svc-agent",), "default", True),
        (("svc-rag-agent",), "default", True),
        (("svc-rag-agent:default",), "default", True),
        (("svc-agent",), "sales", False),
        (("svc-agent:sales", "svc-agent:b"), "sales", True),
    ]:
        assert is_allowed(models, agent_id) is allowed
