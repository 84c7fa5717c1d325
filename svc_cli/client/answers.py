"""Asks an agent a question, and returns the answer as a whole or streams it."""

from collections.abc import Iterator, Mapping
from typing import Any

from svc_cli.client.calls import Calls, part
from svc_cli.client.transport import Request
from svc_cli.errors import ApiError, NetworkFailed
from svc_daemon.wire import Json

#: Read timeout in seconds; long, because the daemon itself limits how long a model may take.
SILENCE_S = 600.0


class AnswerCalls(Calls):
    """The client's methods that ask questions, and that read sources again to check an answer."""

    def ask(self, body: Mapping[str, Any]) -> Json:
        """Return the response of `/v1/responses`: `{output: […], grounded, sources: […], …}`.

        `body` has `model` and `input`, and may have `buckets` and `instructions`.
        """
        request = Request(method="POST", path="/v1/responses", json=dict(body), silence_s=SILENCE_S)
        return self._transport.send(request).body

    def ask_streaming(self, body: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the answer's events; the last, `response.completed` or `response.incomplete`, has the whole answer.

        Raises ApiError if generating the answer fails, and NetworkFailed if the stream ends prematurely.
        """
        request = Request(method="POST", path="/v1/responses", json={**body, "stream": True}, silence_s=SILENCE_S)
        kind = None
        for event in self._transport.stream(request):
            kind = event.get("type")
            if kind == "error":
                raise ApiError(500, {**event, "retryable": True})
            yield event
        if kind not in ENDS:
            raise NetworkFailed("The answer broke off before it was complete.", hint="ask again.")

    def read_source_again(self, source_id: str) -> Json:
        """Return a source's text, extracted again after the service has checked that the stored bytes are unchanged."""
        return self._get(f"/v1/sources/{part(source_id)}/text", {"verify": "content"})


#: The types of the last event of a stream, which contains the whole answer.
ENDS = ("response.completed", "response.incomplete")
