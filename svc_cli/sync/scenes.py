"""What every step of a sync is given: the service, the mapping, how to sync, what is known, and the report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from svc_cli.client.api import Client
from svc_cli.progress import Flow, Progress
from svc_cli.sync.index import Index
from svc_cli.sync.mappings import Mapping, Prune
from svc_cli.sync.reports import Report
from svc_cli.sync.safety import DEFAULT_MAX_DELETE, MaxDelete
from svc_cli.sync.snapshots import Filters
from svc_cli.uploads.items import ReportItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to sync."""

    filters: Filters
    #: Extensions that the service can read.
    extensions: frozenset[str]
    #: The most tags that a source takes, and the longest.
    max_tags: int
    max_tag_characters: int
    prune: Prune = "none"
    max_delete: MaxDelete = DEFAULT_MAX_DELETE
    #: Something was deleted a moment ago and has time to come back: nothing is removed.
    is_restless: bool = False
    wait: Literal["ready", "accepted"] = "ready"
    timeout_s: float | None = None
    jobs: int = 4
    #: Hash every file, whatever its times say.
    is_thorough: bool = False
    #: List the bucket, whatever its revision says.
    verify_remote: bool = False
    is_strict: bool = False
    is_dry: bool = False
    tells_pending: bool = False
    may_create: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """One sync of one mapping."""

    client: Client
    mapping: Mapping
    options: Options
    index: Index
    progress: Progress
    report: Report
    on_item: Callable[[ReportItem], None]
    flow: Flow = field(default_factory=Flow)

    def tell(self, item: ReportItem) -> None:
        """Report what became of a file."""
        self.report.add(item)
        self.show()
        self.on_item(item)

    def show(self) -> None:
        """Show how far it is."""
        report, note = self.report, self.flow.note(self.client.waiting_creates)
        self.progress.update(len(report.items) + report.unchanged, note)

    def note(self, text: str) -> None:
        """Report something besides."""
        self.report.remarks.append(text)
