"""`svc eval`: measures how well searches find the expected passages."""

import itertools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.invocations import AgentOption, BucketsOption, Invocation, ModeOption, command, model_id, new_app
from svc_cli.console import Console, clean
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import cut, table

if TYPE_CHECKING:
    from svc_cli.evals.runs import Evaluation
    from svc_cli.evals.scopes import EvalScope
    from svc_cli.evals.thresholds import Thresholds

app = new_app()

#: Maximum width of a query in the table.
NAME_COLUMNS = 60
DEFAULT_K = 10


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
        from svc_cli.evals.scopes import EvalScope

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
    from svc_cli.evals.golden import read_golden
    from svc_cli.evals.runs import QueryResult, evaluate
    from svc_cli.evals.summaries import item_of, summarize
    from svc_cli.evals.thresholds import Thresholds

    queries = read_golden(Path(flags.golden))
    least = {"recall": flags.min_recall, "mrr": flags.min_mrr, "ndcg": flags.min_ndcg}
    thresholds = Thresholds({metric: value for metric, value in least.items() if value is not None})
    junit = _writable(flags.junit)
    with call.client() as client, call.progress() as progress:
        progress.begin("asking", len(queries))
        done = itertools.count(1)

        def report(result: QueryResult) -> None:
            progress.update(next(done))
            call.console.event({"type": "eval.query", **item_of(result)})

        evaluation = evaluate(client, flags.scope(call), queries, report)
    if junit:
        from svc_cli.evals.junit import render_junit

        junit.write_bytes(render_junit(evaluation, thresholds))
    for warning in evaluation.warnings:
        call.console.warn(warning)
    summary = summarize(evaluation, thresholds)
    call.console.show(summary, lambda: _render(call.console, evaluation, thresholds))
    return Exit(summary["exit_code"])


def _writable(path: str | None) -> Path | None:
    """Return the path of the report. Raises UsageError early if it can't be written."""
    if path is None:
        return None
    report = Path(path)
    if not report.parent.is_dir():
        raise UsageError(f"--junit {path}: there is no folder {report.parent}.")
    if report.is_dir():
        raise UsageError(f"--junit {path}: this is a folder.", hint="name the file of the report in it.")
    is_new = not report.exists()
    try:  # permissions alone don't show whether the file can be written
        if is_new or report.is_file():
            report.open("ab").close()
        if is_new:
            report.unlink()
    except OSError as error:
        raise UsageError(f"--junit {path}: {error.strerror or error}.") from error
    return report


def _render(console: Console, evaluation: "Evaluation", thresholds: "Thresholds") -> str:
    """Render the report: queries, reasons for misses, means, and thresholds not reached."""
    from svc_cli.evals.summaries import describe

    rows, misses = [], []
    for result in evaluation.results:
        name, scores = clean(result.golden.name), [f"{value:.2f}" for value in asdict(result.scores).values()]
        rows.append(("found" if result.is_found else "missed", cut(name, NAME_COLUMNS), result.first_rank, *scores))
        for verdict in result.verdicts:
            if verdict.miss:
                expected = console.paint(clean(describe(verdict.expectation)), "bold")
                misses += [f"missed: {name}", f"  {expected}: {clean(verdict.miss.message)}"]
    means, k = evaluation.scores, evaluation.scope.k
    found = sum(result.is_found for result in evaluation.results)
    head = (
        f"recall@{k} {means.recall:.3f}  MRR@{k} {means.mrr:.3f}  nDCG@{k} {means.ndcg:.3f}"
        f"  {found} of {len(evaluation.results)} queries find all that they should"
    )
    failed = [each for each in thresholds.judge(evaluation) if not each.is_passed]
    totals = [f"{each.metric} is {each.reached:.3f} and should be {each.least:g}" for each in failed]
    parts = [table(console, ("", "query", "rank", "recall", "mrr", "ndcg"), rows), "\n".join(misses)]
    return "\n\n".join(part for part in [*parts, "\n".join([console.paint(head, "bold"), *totals])] if part)
