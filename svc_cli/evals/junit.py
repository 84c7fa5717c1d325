"""An evaluation as JUnit XML, which CI services show beside the results of tests."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from svc_cli.evals.misses import Miss
from svc_cli.evals.runs import Evaluation, QueryResult
from svc_cli.evals.summaries import describe
from svc_cli.evals.thresholds import Threshold, Thresholds

SUITE = "svc eval"
#: What XML can't hold at all.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(evaluation: Evaluation, thresholds: Thresholds) -> bytes:
    """One case for each query and for each demand. What is missed fails, or is only told where demands allow it."""
    judged = thresholds.judge(evaluation)
    suite = Element("testsuite", name=SUITE)
    for result in evaluation.results:
        _add_query(suite, result, is_failure=not judged)
    for threshold in judged:
        _add_threshold(suite, threshold, evaluation.scope.k)
    for kind, attribute in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    suite.set("errors", "0")
    suite.set("time", f"{sum(result.duration_s for result in evaluation.results):.3f}")
    root = Element("testsuites")
    root.append(suite)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _add_query(suite: Element, result: QueryResult, *, is_failure: bool) -> None:
    case = _add_case(suite, result.golden.name, result.duration_s)
    missed = [(describe(verdict.expectation), verdict.miss) for verdict in result.verdicts if verdict.miss]
    if missed:
        _, first = missed[0]
        told = SubElement(case, "failure" if is_failure else "skipped", message=_fit(_told(missed[0][0], first)))
        if is_failure:
            told.set("type", first.code)
        told.text = _fit("\n".join([f"query: {result.golden.query}", *(_told(*each) for each in missed)]))


def _add_threshold(suite: Element, threshold: Threshold, k: int) -> None:
    case = _add_case(suite, f"{threshold.metric}@{k} is at least {threshold.least:g}", 0.0)
    if not threshold.is_passed:
        SubElement(case, "failure", message=f"it is {threshold.reached:.4f}", type="threshold")


def _add_case(suite: Element, name: str, duration_s: float) -> Element:
    return SubElement(suite, "testcase", classname=SUITE, name=_fit(name), time=f"{duration_s:.3f}")


def _told(expected: str, miss: Miss) -> str:
    return f"{expected}: {miss.message}"


def _fit(text: str) -> str:
    return _UNFIT.sub(" ", text)
