"""The daemon without the event log, for `bench_events`: `python -m tests.bench.without_events`."""

from typing import Any

from svc_daemon.operations import events


def source_event(*_: Any, **__: Any) -> None:
    return None


def record_events(_connection: Any, _context: Any, _team_id: str, happenings: list[Any]) -> list[str]:
    return [""] * len(happenings)


if __name__ == "__main__":
    # Before the other modules take them from there.
    events.__dict__.update(source_event=source_event, record_events=record_events)

    from svc_daemon.serve_command import start

    start()
