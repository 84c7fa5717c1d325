"""An evaluation as the one JSON value of `--json`, and its expectations in words."""

from dataclasses import asdict

from svc_cli.evals.gates import Gates
from svc_cli.evals.golden import Expectation
from svc_cli.evals.runs import Evaluation, Result, Verdict
from svc_cli.exits import Exit
from svc_daemon.wire import Json


def summarize(evaluation: Evaluation, gates: Gates) -> Json:
    """`eval.summary`: the means, the demands, and every query."""
    scope, is_passed = evaluation.scope, gates.is_passed(evaluation)
    found = sum(result.is_found for result in evaluation.results)
    summary: Json = {
        "v": 1,
        "type": "eval.summary",
        "buckets": list(scope.buckets),
        "agent": scope.agent,
        "mode": scope.mode,
        "k": scope.k,
        "metrics": {name: round(value, 6) for name, value in asdict(evaluation.scores).items()},
        "thresholds": [{**asdict(gate), "passed": gate.is_passed} for gate in gates.judge(evaluation)],
        "counts": {"queries": len(evaluation.results), "found": found, "missed": len(evaluation.results) - found},
        "items": [item_of(result) for result in evaluation.results],
        "warnings": list(evaluation.warnings),
        "duration_ms": round(1000 * sum(result.duration_s for result in evaluation.results)),
        "exit_code": int(Exit.DONE if is_passed else Exit.FAILED),
    }
    return summary if is_passed else {**summary, "error": _error(evaluation, gates)}


def item_of(result: Result) -> Json:
    """One query."""
    return {
        "name": result.golden.name,
        "query": result.golden.query,
        "found": result.is_found,
        "rank": result.first_rank,
        "metrics": {name: round(value, 6) for name, value in asdict(result.scores).items()},
        "expected": [_verdict(verdict) for verdict in result.verdicts],
    }


def describe(expectation: Expectation) -> str:
    """An expectation in a few words, such as `handbook.md > Vacation: "30 days"`."""
    place = " > ".join(each for each in (expectation.source, expectation.heading) if each)
    quoted = f'"{expectation.text}"' if expectation.text else ""
    return ": ".join(each for each in (place, quoted) if each)


def _verdict(verdict: Verdict) -> Json:
    return {
        **asdict(verdict.expectation),
        "rank": verdict.rank,
        "reason": asdict(verdict.miss) if verdict.miss else None,
    }


def _error(evaluation: Evaluation, gates: Gates) -> Json:
    failed = [gate for gate in gates.judge(evaluation) if not gate.is_passed]
    told = ", ".join(f"{gate.metric} is {gate.reached:.3f} and should be {gate.least:g}" for gate in failed)
    missed = sum(not result.is_found for result in evaluation.results)
    return {
        "code": "svc_eval_failed",
        "message": f"{told}." if told else f"{missed} of {len(evaluation.results)} queries miss what they should find.",
        "retryable": False,
        "details": {"missed": [result.golden.name for result in evaluation.results if not result.is_found]},
        "hint": None,
    }
