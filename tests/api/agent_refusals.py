"""As `refusals`, for the codes that are about agents, models, plans and what models write."""

from collections.abc import Callable

import httpx

from svc_daemon.api.layers.faults import is_openai_path
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.codes import ErrorCode as E
from tests.api.stages import Call, Stage
from tests.llm.chats import chatting, stalling, streaming

Spoiler = Callable[[Stage, Call], httpx.Response]

AGENT_SPOILERS: dict[ErrorCode, Spoiler] = {}


def spoils(code: ErrorCode) -> Callable[[Spoiler], Spoiler]:
    def note(spoiler: Spoiler) -> Spoiler:
        AGENT_SPOILERS[code] = spoiler
        return spoiler

    return note


def _using(call: Call, model: str) -> Call:
    """The call about this model, wherever it names one."""
    if "model" in call.places:
        return call.at(model=model)
    if "agent_id" in call.places:
        return call.at(agent_id=model.partition(":")[2] or "default")
    if call.path == "/v1/agents":
        return call
    if is_openai_path(call.path):
        return call.sending(model=model)
    if call.method == "GET":
        return call.asking(agent=model)
    return call.sending(models=[model]) if call.path == "/v1/keys" else call.sending(agent=model)


@spoils(E.AGENT_NOT_FOUND)
def _no_agent(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(_using(call, "svc-agent:nobody"))


@spoils(E.MODEL_NOT_FOUND)
def _no_model(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(_using(call, "another-model"))


@spoils(E.MODEL_NOT_ALLOWED)
def _other_model(stage: Stage, call: Call) -> httpx.Response:
    """The key is kept to an agent that isn't the one of the call."""
    key = stage.daemon.add_key(models=("svc-agent:other",))
    return stage.send(_using(call, "svc-agent").but(key=key))


@spoils(E.AGENT_EXISTS)
def _taken(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(call.sending(agent_id=stage.agent()))


@spoils(E.AGENT_LIMIT_REACHED)
def _too_many(stage: Stage, call: Call) -> httpx.Response:
    stage.agent()
    with stage.limited(agents=1):
        return stage.send(call)


@spoils(E.AGENT_REPLAY_CHECK_UNAVAILABLE)
def _undecided(stage: Stage, call: Call) -> httpx.Response:
    key, agent_id = stage.name("key"), call.options["json"]["agent_id"]
    with stage.daemon.context.gates.hold_agent(stage.key_id, key, agent_id):
        return stage.send(call.naming(Idempotency_Key=key))


@spoils(E.INVALID_AGENT_PROFILE)
def _bad_profile(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(call.sending(policy={"scope": "everything"}))


@spoils(E.NO_UPDATES)
def _nothing(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(call.but(json={}))


@spoils(E.DELETE_BLOCKED)
def _in_use(stage: Stage, call: Call) -> httpx.Response:
    if "agent_id" in call.places:
        return stage.send(call.at(agent_id=stage.agent(bound_surface="widget")))
    stage.agent(policy={"source_ids": [call.places["source_id"]]})
    return stage.send(call)


@spoils(E.METADATA_FILTER_TOO_LARGE)
def _too_many_sources(stage: Stage, call: Call) -> httpx.Response:
    if not is_openai_path(call.path):
        sources = [f"src_{number}" for number in range(201)]
        return stage.send(call.asking(source_ids=sources) if call.method == "GET" else call.sending(source_ids=sources))
    policy = {"scope": "sources", "source_ids": [stage.ready()[1] for _ in range(2)]}
    with stage.limited(search_sources=1):
        return stage.send(_using(call, f"svc-agent:{stage.agent(policy=policy)}"))


@spoils(E.ANSWER_FAILED)
def _model_away(stage: Stage, call: Call) -> httpx.Response:
    with chatting(streaming(b"", status=500)) as server, stage.writing(server.url("/v1")):
        return stage.send(call)


@spoils(E.ANSWER_TIMEOUT)
def _model_silent(stage: Stage, call: Call) -> httpx.Response:
    with chatting(stalling()) as server, stage.writing(server.url("/v1")):
        return stage.send(call)


@spoils(E.RAG_QUOTA_EXCEEDED)
def _used_up(stage: Stage, call: Call) -> httpx.Response:
    assert stage.send(call).is_success
    with stage.limited(answers_per_month=1):
        return stage.send(call)


@spoils(E.SEARCH_DISABLED)
def _switched_off(stage: Stage, call: Call) -> httpx.Response:
    operator = {"Authorization": f"Bearer {stage.daemon.operator_token}"}
    switch = Call("PUT", "/admin/search", options={"headers": operator})
    assert stage.send(switch.sending(enabled=False)).is_success
    try:
        return stage.send(call)
    finally:
        assert stage.send(switch.sending(enabled=True)).is_success
