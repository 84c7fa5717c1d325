"""Run `svc` with short limits of time, so that tests wait less: `python -m tests.acceptance.impatient WORDS…`."""

from functools import partialmethod

from svc_cli import http_responses
from svc_cli.client.retries import RetryPolicy
from svc_cli.daemon import probes
from svc_cli.main import main
from svc_cli.sync.watch import engines, observers, settling, watchers
from svc_cli.sync.watch.observers import Kind
from svc_cli.transfer import queues, runs


def shorten() -> None:
    """Shorten the limits of this process: of silence, of transfers after Ctrl-C, and of rest after a change."""
    probes.PROBE_TIMEOUT_S = http_responses.HEAD_S = 1.0
    probes.probe.__defaults__ = (1.0, *(probes.probe.__defaults__ or ())[1:])
    RetryPolicy.__init__ = partialmethod(RetryPolicy.__init__, first_delay_s=0.001)  # type: ignore[assignment, method-assign]
    runs.GRACE_S = queues.GRACE_S = 0.5  # type: ignore[attr-defined]
    settling.REST_S.update({Kind.GONE: 1.0, Kind.MOVED: 1.0})
    watchers.CALM_S, watchers.WITHHELD_PAUSE_S = 1.0, 3.0
    observers.UNREAD_PAUSE_S, observers.POLL_S, engines.LEAST_REPORT_S = 0.5, 1.0, 0.5


if __name__ == "__main__":
    shorten()
    main()
