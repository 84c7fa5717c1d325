"""Converts an evaluation to the JSON of `svc eval --json`, and an expectation to text."""

from dataclasses import asdict

from svc_cli.evals.golden import Expectation
from svc_cli.evals.runs import Evaluation, QueryResult
from svc_cli.evals.thresholds import Thresholds
from svc_cli.exits import Exit
from svc_daemon.wire import Json


def summarize(evaluation: Evaluation, thresholds: Thresholds) -> Json:
    """Return the JSON object with the mean scores, the thresholds, and the result of every query."""
    scope, is_passed = evaluation.scope, thresholds.is_passed(evaluation)
    found = sum(result.is_found for result in evaluation.results)
    summary: Json = {
        "v": 1,
        "type": "eval.summary",
        "buckets": list(scope.buckets),
        "agent": scope.agent,
        "mode": scope.mode,
        "k": scope.k,
        "metrics": {name: round(value, 6) for name, value in asdict(evaluation.scores).items()},
        "thresholds": [
            {**asdict(threshold), "passed": threshold.is_passed} for threshold in thresholds.judge(evaluation)
        ],
        "counts": {"queries": len(evaluation.results), "found": found, "missed": len(evaluation.results) - found},
        "items": [item_of(result) for result in evaluation.results],
        "warnings": list(evaluation.warnings),
        "duration_ms": round(1000 * sum(result.duration_s for result in evaluation.results)),
        "exit_code": int(Exit.DONE if is_passed else Exit.FAILED),
    }
    if is_passed:
        return summary
    failed = [each for each in thresholds.judge(evaluation) if not each.is_passed]
    means = ", ".join(f"{each.metric} is {each.reached:.3f} and should be {each.least:g}" for each in failed)
    missed = [result.golden.name for result in evaluation.results if not result.is_found]
    summary["error"] = {
        "code": "svc_eval_failed",
        "message": f"{means or f'{len(missed)} of {len(evaluation.results)} queries miss what they should find'}.",
        "retryable": False,
        "details": {"missed": missed},
        "hint": None,
    }
    return summary


def item_of(result: QueryResult) -> Json:
    """Return the JSON object for the result of one query."""
    return {
        "name": result.golden.name,
        "query": result.golden.query,
        "found": result.is_found,
        "rank": result.first_rank,
        "metrics": {name: round(value, 6) for name, value in asdict(result.scores).items()},
        "expected": [
            {**asdict(each.expectation), "rank": each.rank, "reason": asdict(each.miss) if each.miss else None}
            for each in result.verdicts
        ],
    }


def describe(expectation: Expectation) -> str:
    """Describe an expectation, such as `handbook.md > Vacation: "30 days"`."""
    place = " > ".join(each for each in (expectation.source, expectation.heading) if each)
    quoted = f'"{expectation.text}"' if expectation.text else ""
    return ": ".join(each for each in (place, quoted) if each)
