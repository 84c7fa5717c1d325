"""Run `svc` with short limits of time, against what answers without end: `python -m tests.cli.impatient WORDS…`."""

from functools import partialmethod

from svc_cli import http_responses
from svc_cli.client.retries import RetryPolicy
from svc_cli.daemon import probes
from svc_cli.main import main

PROBE_S, HEAD_S, RETRY_S = 1.0, 1.0, 0.001


def shorten() -> None:
    """Shorten the limits of this process."""
    probes.PROBE_TIMEOUT_S = PROBE_S
    probes.probe.__defaults__ = (PROBE_S, *(probes.probe.__defaults__ or ())[1:])
    http_responses.HEAD_S = HEAD_S
    RetryPolicy.__init__ = partialmethod(RetryPolicy.__init__, first_delay_s=RETRY_S)  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    shorten()
    main()
