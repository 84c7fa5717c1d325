"""`svc eval`: how well searches find what they should, as a gate for builds."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.options import AgentOption, BucketsOption, Invocation, ModeOption, command, model_id, new_app
from svc_cli.console import Console, clean
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import cut, table

if TYPE_CHECKING:
    from svc_cli.evals.runs import Evaluation
    from svc_cli.evals.thresholds import Thresholds

app = new_app()

#: Columns of a query in the table.
NAME_COLUMNS = 60
DEFAULT_K = 10


def _least(metric: str) -> Any:
    return typer.Option(
        f"--min-{metric}", metavar="X", min=0.0, max=1.0, help=f"Exit with code 3 if the mean {metric} is below X."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalFlags:
    """What stands on the command line."""

    golden: Annotated[
        str, typer.Argument(metavar="FILE", help="A YAML or JSON file of queries, and of what each must find.")
    ]
    bucket: BucketsOption = None
    agent: AgentOption = None
    k: Annotated[
        int, typer.Option("-k", "--k", metavar="N", min=1, max=50, help="Judge the first N results, 1 to 50.")
    ] = DEFAULT_K
    mode: ModeOption = None
    min_recall: Annotated[float | None, _least("recall")] = None
    min_mrr: Annotated[float | None, _least("mrr")] = None
    min_ndcg: Annotated[float | None, _least("ndcg")] = None
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a report as JUnit XML to this file.")
    ] = None


@command(app, "eval", "svc eval golden.yaml -b handbook", "svc eval golden.yaml --min-recall 0.9 --junit report.xml")
def evaluate_command(call: Invocation, flags: EvalFlags) -> Exit:
    """Run the queries of a file, compare the results with what should be found, and explain each miss.

    Exits with code 3 if a mean is below --min-recall, --min-mrr or --min-ndcg; without these options, if anything is
    missed.
    """
    from svc_cli.evals.golden import read_golden
    from svc_cli.evals.summaries import summarize
    from svc_cli.evals.thresholds import Thresholds

    queries = read_golden(Path(flags.golden))
    least = {"recall": flags.min_recall, "mrr": flags.min_mrr, "ndcg": flags.min_ndcg}
    thresholds = Thresholds({metric: value for metric, value in least.items() if value is not None})
    junit = _writable(flags.junit)
    evaluation = _evaluate(call, flags, queries)
    if junit:
        from svc_cli.evals.junit import render_junit

        junit.write_bytes(render_junit(evaluation, thresholds))
    for warning in evaluation.warnings:
        call.console.warn(warning)
    summary = summarize(evaluation, thresholds)
    call.console.show(summary, lambda: _render(call.console, evaluation, thresholds))
    return Exit(summary["exit_code"])


def _writable(path: str | None) -> Path | None:
    """Where the report goes; said before anything is asked where it can't."""
    if path is None:
        return None
    report = Path(path)
    if not report.parent.is_dir():
        raise UsageError(f"--junit {path}: there is no folder {report.parent}.")
    if report.is_dir():
        raise UsageError(f"--junit {path}: this is a folder.", hint="name the file of the report in it.")
    try:
        _try_to_write(report)
    except OSError as error:
        raise UsageError(f"--junit {path}: {error.strerror or error}.") from error
    return report


def _try_to_write(path: Path) -> None:
    """Open the file, and leave things as they are; raises OSError. Permissions alone don't say whether that works."""
    is_new = not path.exists()
    if is_new or path.is_file():
        path.open("ab").close()
    if is_new:
        path.unlink()


def _evaluate(call: Invocation, flags: EvalFlags, queries: list[Any]) -> "Evaluation":
    from svc_cli.evals.runs import QueryResult, evaluate
    from svc_cli.evals.scopes import EvalScope
    from svc_cli.evals.summaries import item_of

    # An agent has buckets of its own; the one of the settings would cut it down unasked.
    default = None if flags.agent else call.settings.get("bucket")
    scope = EvalScope(
        buckets=tuple(flags.bucket or ([default] if default else [])),
        agent=model_id(flags.agent) if flags.agent else None,
        mode=call.settings.get("search.mode", flags.mode),
        k=flags.k,
    )
    with call.client() as client, call.progress() as progress:
        progress.begin("asking", len(queries))
        done = 0

        def tell(result: QueryResult) -> None:
            nonlocal done
            done += 1
            progress.update(done)
            call.console.event({"type": "eval.query", **item_of(result)})

        return evaluate(client, scope, queries, tell)


def _render(console: Console, evaluation: "Evaluation", thresholds: "Thresholds") -> str:
    parts = [_table(console, evaluation), _misses(console, evaluation), _totals(console, evaluation, thresholds)]
    return "\n\n".join(part for part in parts if part)


def _table(console: Console, evaluation: "Evaluation") -> str:
    rows = [
        (
            "found" if result.is_found else "missed",
            cut(clean(result.golden.name), NAME_COLUMNS),
            result.first_rank,
            *(f"{value:.2f}" for value in asdict(result.scores).values()),
        )
        for result in evaluation.results
    ]
    return table(console, ("", "query", "rank", "recall", "mrr", "ndcg"), rows)


def _misses(console: Console, evaluation: "Evaluation") -> str:
    from svc_cli.evals.summaries import describe

    def lines() -> Iterator[str]:
        for result in evaluation.results:
            for verdict in result.verdicts:
                if verdict.miss:
                    yield f"missed: {clean(result.golden.name)}"
                    expected = clean(describe(verdict.expectation))
                    yield f"  {console.paint(expected, 'bold')}: {clean(verdict.miss.message)}"

    return "\n".join(lines())


def _totals(console: Console, evaluation: "Evaluation", thresholds: "Thresholds") -> str:
    scores, k = evaluation.scores, evaluation.scope.k
    found = sum(result.is_found for result in evaluation.results)
    head = (
        f"recall@{k} {scores.recall:.3f}  MRR@{k} {scores.mrr:.3f}  nDCG@{k} {scores.ndcg:.3f}"
        f"  {found} of {len(evaluation.results)} queries find all that they should"
    )
    failed = [threshold for threshold in thresholds.judge(evaluation) if not threshold.is_passed]
    told = [f"{threshold.metric} is {threshold.reached:.3f} and should be {threshold.least:g}" for threshold in failed]
    return "\n".join([console.paint(head, "bold"), *told])
