"""Types of completions. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.answers import AnnotationDict, AnswerSourceDict


class CompletionUsageDict(TypedDict):
    """How many tokens were used. Without a language model, words are counted instead."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionMessageDict(TypedDict):
    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[AnnotationDict]


class CompletionChoiceDict(TypedDict):
    index: Literal[0]
    message: CompletionMessageDict
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


class CompletionDict(TypedDict):
    """One answer. `grounded`, `sources`, `warnings` and `request_id` are additions to OpenAI's format."""

    id: str
    object: Literal["chat.completion"]
    created: int
    """Unix time in seconds."""
    model: str
    """The model id, as in the request."""
    choices: list[CompletionChoiceDict]
    usage: CompletionUsageDict
    system_fingerprint: None
    grounded: bool
    sources: list[AnswerSourceDict]
    warnings: list[str]
    """Warnings of the search that found the passages."""
    request_id: str
