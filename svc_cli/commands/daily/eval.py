"""`svc eval`: measures how well searches find the expected passages."""

import itertools
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.invocations import AgentOption, BucketsOption, Invocation, ModeOption, command, model_id, new_app
from svc_cli.console import Console, clean
from svc_cli.exits import Exit
from svc_cli.render import cut, table
from svc_daemon.wire import Json

if TYPE_CHECKING:
    from svc_cli.evals.evaluations import EvalScope

app = new_app()

#: Maximum width of a query in the table.
NAME_COLUMNS = 60
DEFAULT_K = 10
#: How reports name each metric.
METRICS = {"recall": "recall", "mrr": "MRR", "ndcg": "nDCG"}
#: Characters that XML can't contain, even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _least(metric: str, name: str) -> Any:
    return typer.Option(
        f"--min-{metric}", metavar="X", min=0.0, max=1.0, help=f"Exit with code 3 if the mean {name} is below X."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalFlags:
    """The options of `eval`."""

    golden: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A YAML or JSON file with queries, and the results expected for each query."
        ),
    ]
    bucket: BucketsOption = None
    agent: AgentOption = None
    k: Annotated[
        int,
        typer.Option(
            "-k", "--k", metavar="N", min=1, max=50, help="Evaluate the first N results of each query, 1 to 50."
        ),
    ] = DEFAULT_K
    mode: ModeOption = None
    min_recall: Annotated[float | None, _least("recall", "recall")] = None
    min_mrr: Annotated[float | None, _least("mrr", "reciprocal rank (MRR)")] = None
    min_ndcg: Annotated[float | None, _least("ndcg", "nDCG")] = None
    junit: Annotated[str | None, typer.Option(metavar="FILE", help="Also write a JUnit XML report to this file.")] = (
        None
    )

    def scope(self, call: Invocation) -> "EvalScope":
        """Return what the searches have in common: buckets, agent, mode and number of results."""
        from svc_cli.evals.evaluations import EvalScope

        # An agent has its own buckets, so ignore the setting.
        default = None if self.agent else call.settings.get("bucket")
        return EvalScope(
            buckets=tuple(self.bucket or ([default] if default else [])),
            agent=model_id(self.agent) if self.agent else None,
            mode=call.settings.get("search.mode", self.mode),
            k=self.k,
        )


@command(app, "eval", "svc eval golden.yaml -b handbook", "svc eval golden.yaml --min-recall 0.9 --junit report.xml")
def evaluate_command(call: Invocation, flags: EvalFlags) -> Exit:
    """Run the queries of a file, compare the results with the expected ones, and explain each miss.

    Exits with code 3 if a metric is below its minimum or, without minimums, if any expected passage is missing. Recall
    is the share of the expected passages that were found. MRR is the mean of 1 / rank of the first expected passage.
    nDCG is higher the nearer the expected passages are to the top. All are between 0 and 1.
    """
    from svc_cli.evals.evaluations import evaluate, summarize
    from svc_cli.evals.golden import read_golden
    from svc_cli.transfer.downloads import writing

    queries = read_golden(Path(flags.golden))
    given = {"recall": flags.min_recall, "mrr": flags.min_mrr, "ndcg": flags.min_ndcg}
    least = {name: value for name, value in given.items() if value is not None}
    scope, done = flags.scope(call), itertools.count(1)
    with ExitStack() as stack:
        # Opened now, so that a report that can't be written is an error before any query.
        junit = stack.enter_context(writing(flags.junit)) if flags.junit else None
        client, progress = stack.enter_context(call.client()), stack.enter_context(call.progress())
        progress.begin("asking", len(queries))

        def report(item: Json) -> None:
            progress.update(next(done))
            call.console.event({"type": "eval.query", **item})

        items, warnings = evaluate(client, scope, queries, report)
        summary = summarize(scope, items, warnings, least)
        if junit:
            junit.write(_render_junit(summary))
    for warning in warnings:
        call.console.warn(warning)
    call.console.show(summary, lambda: _render(call.console, summary))
    return Exit(summary["exit_code"])


def _render(console: Console, summary: Json) -> str:
    """Render the report: queries, reasons for misses, means, and minimums that were not reached."""
    from svc_cli.evals.evaluations import describe_failed

    rows, misses = [], []
    for item in summary["items"]:
        name, scores = clean(item["name"]), [f"{value:.2f}" for value in item["metrics"].values()]
        rows.append(("found" if item["found"] else "missed", cut(name, NAME_COLUMNS), item["rank"], *scores))
        for expected, reason in _misses(item):
            misses += [f"missed: {name}", f"  {console.paint(clean(expected), 'bold')}: {clean(reason['message'])}"]
    k, counts = summary["k"], summary["counts"]
    means = "  ".join(f"{title}@{k} {summary['metrics'][metric]:.3f}" for metric, title in METRICS.items())
    head = f"{means}  {counts['found']} of {counts['queries']} queries find all that they should"
    parts = [table(console, ("", "query", "rank", *METRICS), rows), "\n".join(misses)]
    totals = [console.paint(head, "bold"), *describe_failed(summary["thresholds"])]
    return "\n\n".join(part for part in [*parts, "\n".join(totals)] if part)


def _render_junit(summary: Json) -> bytes:
    """Render one test case of JUnit XML, which CI services display, for each query and each minimum.

    A query that did not find all its passages is a failure. If there are minimums, such a query is `skipped`
    instead, and only minimums that were not reached are failures.
    """
    from xml.etree.ElementTree import Element, SubElement, tostring

    root = Element("testsuites")
    suite = SubElement(root, "testsuite", name="svc eval")

    def add(name: str, duration_ms: int = 0) -> Element:
        time = f"{duration_ms / 1000:.3f}"
        return SubElement(suite, "testcase", classname="svc eval", name=_UNFIT.sub(" ", name), time=time)

    for item in summary["items"]:
        case, missed = add(item["name"], item["duration_ms"]), _misses(item)
        if missed:
            lines = [f"{expected}: {reason['message']}" for expected, reason in missed]
            report = SubElement(
                case, "skipped" if summary["thresholds"] else "failure", message=_UNFIT.sub(" ", lines[0])
            )
            report.text = _UNFIT.sub(" ", "\n".join([f"query: {item['query']}", *lines]))
            if not summary["thresholds"]:
                report.set("type", missed[0][1]["code"])
    for each in summary["thresholds"]:
        case = add(f"{each['metric']}@{summary['k']} is at least {each['least']:g}")
        if not each["passed"]:
            SubElement(case, "failure", message=f"it is {each['reached']:.4f}", type="threshold")
    for kind, attribute in (("testcase", "tests"), ("testcase/failure", "failures"), ("testcase/skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(kind))))
    suite.set("errors", "0")
    suite.set("time", f"{summary['duration_ms'] / 1000:.3f}")
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _misses(item: Json) -> list[tuple[str, Json]]:
    """Return what a query missed, in words, and the reason of each."""
    from svc_cli.evals.golden import EXPECTATION_FIELDS, Expectation

    missed = [each for each in item["expected"] if each["reason"]]
    return [(str(Expectation(**{name: each[name] for name in EXPECTATION_FIELDS})), each["reason"]) for each in missed]
