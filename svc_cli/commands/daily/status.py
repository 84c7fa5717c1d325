"""`svc status`: shows the state of buckets, sources and batches."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from svc_cli.client.source_lookups import find_source, is_id
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.commands.nouns.batches import BATCH_PREFIX, render_batch
from svc_cli.commands.nouns.source_views import render_source, render_sources
from svc_cli.console import Console, clean, clean_styled, is_terminal
from svc_cli.errors import ApiError
from svc_cli.exits import Exit
from svc_cli.progress import PLAIN_INTERVAL_S
from svc_cli.render import counted, duration, size, table
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from rich.live import Live

    from svc_cli.client.api import Client


class Screen:
    """Shows each text on stderr in place of the previous one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._said_s = time.monotonic()

    def __enter__(self) -> Self:
        movable = is_terminal(self._console.err) and self._console.environ.get("TERM") != "dumb"
        if movable and self._console.is_text:
            from rich.console import Console as RichConsole
            from rich.live import Live

            self._live = Live(console=RichConsole(file=self._console.err), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, text: str) -> None:
        """Replace the displayed text."""
        if self._live is not None:
            from rich.text import Text

            text = fit(text, self._live.console.height)
            self._live.update(Text.from_ansi(clean_styled(text)), refresh=True)
        elif time.monotonic() - self._said_s >= PLAIN_INTERVAL_S:
            self._said_s = time.monotonic()
            self._console.message(text.replace("\n", "; "))


def fit(text: str, height: int) -> str:
    """Cut a text to a screen of this height. What failed comes first, so that the rest is cut."""
    lines, room = text.split("\n"), max(2, height - 1)
    return text if len(lines) <= room else "\n".join([*lines[: room - 1], f"and {len(lines) - room + 1} more lines"])


app = new_app()

#: How `status` and `wait` take what they show or wait for.
NAMED = typer.Argument(
    metavar="SOURCE|BATCH", help="A source by id, id prefix, title or file name, or a batch by its complete id."
)

#: Minimum seconds between two updates of `--watch`.
WATCH_INTERVAL_S = 1.0
#: Maximum seconds between two updates of `--watch`. Some changes cause no event.
LONGEST_INTERVAL_S = 10.0
#: Maximum number of listed sources that are unfinished or failed.
MOST_ROWS = 30


@command(
    app,
    "status",
    "svc status",
    "svc status -b handbook --watch",
    "svc status docs/leave.md -b handbook",
)
def status(
    call: Invocation,
    source: Annotated[str | None, NAMED] = None,
    bucket: Annotated[
        str | None,
        typer.Option("--bucket", "-b", metavar="BUCKET", help="Show this bucket, or look for SOURCE in it."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep updating the display until nothing is pending.")
    ] = False,
) -> Exit:
    """Show the state of all buckets, or of one bucket, source or batch."""
    with call.connected() as (client, connection):
        for message in connection.health.away.values():
            call.console.warn(message)
        view: _View
        if source and is_id(source, BATCH_PREFIX):
            view = _BatchView(call, client, source)
        elif source:
            view = _SourceView(call, client, find_source(client, source, call.settings.get("bucket", bucket)))
        elif bucket:
            view = _BucketView(call, client, bucket)
        else:
            view = _AllView(call, client)
        answer = view.watch() if watch else view.look()
    if engines := connection.health.answer.get("engines"):
        answer = {**answer, "engines": engines}

    def text() -> str:
        if not watch or not is_terminal(call.console.out):
            return view.text(answer)
        from shutil import get_terminal_size

        return fit(view.text(answer), get_terminal_size().lines)

    call.console.show(answer, text)
    return Exit.DONE


class _View(ABC):
    """A display of `svc status`: shown once or, with `--watch`, updated until nothing is pending."""

    def __init__(self, call: Invocation, client: "Client", name: str = "") -> None:
        self.call = call
        self.client = client
        self.name = name

    @abstractmethod
    def look(self) -> JsonMapping: ...

    @abstractmethod
    def text(self, answer: JsonMapping) -> str: ...

    @abstractmethod
    def is_settled(self, answer: JsonMapping) -> bool: ...

    def watch(self) -> JsonMapping:
        """Show changes until nothing is pending, and return the last state."""
        shown: JsonMapping | None = None
        with Screen(self.call.console) as screen, changes_of(self.client) as await_change:
            while True:
                answer = self.look()
                if _without_request(answer) != shown:
                    shown = _without_request(answer)
                    self.call.console.event(answer)
                    screen.update(self.text(answer))
                if self.is_settled(answer):
                    break
                await_change()
        return answer


@contextmanager
def changes_of(client: "Client") -> Iterator[Callable[[], object]]:
    """Yield a function that waits up to LONGEST_INTERVAL_S for an event, and then another WATCH_INTERVAL_S."""
    with client.follow_events({"types": "source,bucket,batch,store"}) as follower:

        def await_change() -> None:
            follower.take(LONGEST_INTERVAL_S)
            time.sleep(WATCH_INTERVAL_S)

        yield await_change


class _SourceView(_View):
    """Shows one source, with all its fields."""

    def look(self) -> JsonMapping:
        source: JsonMapping = self.client.source(self.name)
        if self.is_settled(source) or not source.get("task"):
            return source
        return {**source, "progress": self.client.task(source["task"]["id"])["progress"]}

    def text(self, answer: JsonMapping) -> str:
        return render_source(self.call.console, answer)

    def is_settled(self, answer: JsonMapping) -> bool:
        return bool(answer["ready"] or answer["status"] == "failed")


class _BatchView(_View):
    """Shows how many files of one batch are in each state."""

    def look(self) -> JsonMapping:
        return self.client.batch(self.name)

    def text(self, answer: JsonMapping) -> str:
        return render_batch(self.call.console, answer)

    def is_settled(self, answer: JsonMapping) -> bool:
        return bool(answer["terminal"])


class _BucketView(_View):
    """Shows how many sources of one bucket are in each state, and lists those that are not ready."""

    def look(self) -> JsonMapping:
        unready: list[JsonMapping] = []
        page: JsonMapping = {}
        for state in ("failed", "indexing", "queued"):
            for page in self.client.source_pages(self.name, {"status": state}):
                unready += page["sources"]
        answer = {key: value for key, value in page.items() if key not in {"has_more", "last_id"}}
        bucket = self.client.bucket(self.name, members=False)
        stale: list[JsonMapping] = []
        if bucket["bucketStore"].get("stale_member_count"):
            for page in self.client.source_pages(self.name, {"status": "all", "stale": "true"}):
                stale += page["sources"]
        answer = {**answer, "sources": unready, "stale": stale, "bucket": bucket, "waits_for": self._shortage(unready)}
        return _with_recognition(self.client, answer, [bucket])

    def _shortage(self, unready: Sequence[JsonMapping]) -> JsonMapping | None:
        """Return what keeps the service from indexing, which it tells of a source that is not settled."""
        waiting = next((source for source in unready if source["status"] != "failed"), None)
        if waiting is None:
            return None
        with suppress(ApiError):  # it may have been deleted a moment ago
            return self.client.source(waiting["id"]).get("waits_for")
        return None

    def text(self, answer: JsonMapping) -> str:
        most = max(len(answer["sources"]), len(answer["stale"])) if self.call.console.is_verbose else MOST_ROWS
        rows = render_sources(self.call.console, answer["sources"][:most])
        top = render_buckets(self.call.console, [answer["bucket"]]) + _remarks(answer, [answer["bucket"]])
        if shortage := answer["waits_for"]:
            top += f"\n\nwaits for: {clean(shortage['message'])} It continues automatically."
        for source in answer["stale"][:most]:
            refresh = source["refresh"]
            often = f"{counted(refresh['failures'], 'failure')} in a row"
            top += f"\n  {source['id']}  {clean(source['title'])}: {often}, {clean(refresh['error']['message'])}"
        if not rows:
            return top
        more = len(answer["sources"]) - most
        last = f"\nand {more} more" if more > 0 else ""
        return f"{top}\n\n{rows}{last}"

    def is_settled(self, answer: JsonMapping) -> bool:
        return not any(source["status"] != "failed" for source in answer["sources"]) and not _pending(answer["bucket"])


class _AllView(_View):
    """Shows all buckets of the team."""

    def look(self) -> JsonMapping:
        answer: JsonMapping = self.client.buckets(members=False)
        # A key that may only create buckets can't see these.
        with suppress(ApiError):
            service, watchers = self.client.status(), self.client.watchers()["data"]
            # `--watch` shows what changes, and free bytes and times of reports always do.
            kept = {name: value for name, value in service.items() if name not in ("disk", "request_id")}
            seen = [{name: value for name, value in each.items() if name != "reported_at"} for each in watchers]
            answer = {**answer, "service": kept, "watchers": seen}
        return _with_recognition(self.client, answer, answer["buckets"])

    def text(self, answer: JsonMapping) -> str:
        shown = render_buckets(self.call.console, answer["buckets"]) + _remarks(answer, answer["buckets"])
        shown = shown or "no buckets yet: `svc upload FILE -b BUCKET` creates the first."
        service = answer.get("service") or {}
        trouble, vectors = service.get("last_trouble") or {}, service.get("vectors") or {}
        watched = [mapping for watcher in answer.get("watchers") or [] for mapping in watcher["mappings"]]
        # What is well needs no words here, and an engine that is away was named already.
        is_named = any(engine["message"] for engine in service.get("engines") or [])
        lines = [] if not trouble or trouble["until"] or is_named else [clean(f"trouble: {trouble['message']}")]
        lines += [f"vectors: {say_vectors(service)}"] if vectors.get("missing") and say_vectors(service) else []
        for each in sorted(watched, key=lambda mapping: not mapping["troubles"]):
            troubles = f": {'; '.join(each['troubles'])}" if each["troubles"] else ""
            lines.append(clean(f"watched: {each['name']} into {each['bucket']}, {each['state']}{troubles}"))
        return "\n\n".join([shown, *(["\n".join(lines)] if lines else [])])

    def is_settled(self, answer: JsonMapping) -> bool:
        return not any(_pending(each) for each in answer["buckets"])


def say_vectors(service: JsonMapping) -> str | None:
    """Say how many passages have vectors, and about how long the rest takes; None if that isn't known, or no matter."""
    vectors = service.get("vectors") or {}
    if vectors.get("state") in (None, "off") or vectors.get("passages") is None:
        return None
    missing, left = vectors["missing"], vectors.get("seconds_left")
    said = f"{vectors['passages'] - missing:,} of {vectors['passages']:,} passages"
    return f"{said}, about {duration(left)} left" if missing and left is not None else said


def render_buckets(console: Console, buckets: Sequence[JsonMapping]) -> str:
    """Render a table of buckets, those with failed sources first."""
    heads = ("failed", "bucket", "state", "ready", "pending", "size", "name")
    ordered = sorted(buckets, key=lambda bucket: not _failed(bucket))
    rows = [
        (
            _failed(bucket),
            bucket["slug"],
            bucket["status"] if bucket["status"] != "active" else bucket["bucketStore"]["status"],
            bucket["counts"]["retrievable"],
            _pending(bucket),
            size(bucket.get("bytes", 0)),
            bucket["name"] if bucket["name"] != bucket["slug"] else "",
        )
        for bucket in ordered
    ]
    return table(console, heads, rows) if rows else ""


def count_members(buckets: Iterable[JsonMapping], count: str) -> int:
    """Return the sum of one of the counts of `bucketStore`. Older daemons don't send all of them."""
    return sum(int(bucket["bucketStore"].get(count, 0)) for bucket in buckets)


def _with_recognition(client: "Client", answer: JsonMapping, buckets: Sequence[JsonMapping]) -> JsonMapping:
    """Add whether text in pictures is recognised, and how fast, if any of the buckets has scans."""
    has_scans = count_members(buckets, "scan_member_count") + count_members(buckets, "unread_scan_member_count")
    return {**answer, "ocr": client.limits()["ocr"]} if has_scans else answer


def _remarks(answer: JsonMapping, buckets: Sequence[JsonMapping]) -> str:
    """Return what is to be known of all sources together, each remark below a blank line."""
    remarks, ocr = [], answer.get("ocr") or {}
    if older := count_members(buckets, "older_reader_member_count"):
        remarks.append(f"{counted(older, 'source')} read by an older version of svc")
    if stale := count_members(buckets, "stale_member_count"):
        remarks.append(f"{counted(stale, 'source')} could not be refreshed, and may be outdated")
    if pages := count_members(buckets, "scan_pages_left"):
        pace = ocr.get("page_seconds")
        left = f", {duration(pace * pages)}" if pace else ""
        scans = counted(count_members(buckets, "scan_member_count"), "scan")
        remarks.append(f"{scans} being read: {counted(pages, 'page')} left{left}")
    unread = count_members(buckets, "unread_scan_member_count")
    if unread and ocr.get("state") == "ready":
        remarks.append(f"{counted(unread, 'scan')} can be read now: `svc source retry --ocr`")
    return "".join(f"\n\n{remark}" for remark in remarks)


def _failed(bucket: JsonMapping) -> int:
    # Older daemons do not send this count.
    return int(bucket["bucketStore"].get("failed_member_count", 0))


def _pending(bucket: JsonMapping) -> int:
    return int(bucket["bucketStore"]["pending_member_count"])


def _without_request(answer: JsonMapping) -> JsonMapping:
    return {key: value for key, value in answer.items() if key != "request_id"}
