"""Renders an evaluation as JUnit XML, which CI services display."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from svc_cli.evals.runs import Evaluation
from svc_cli.evals.summaries import describe
from svc_cli.evals.thresholds import Thresholds

SUITE = "svc eval"
#: Characters that XML can't contain, even escaped.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(evaluation: Evaluation, thresholds: Thresholds) -> bytes:
    """Render one test case for each query and each threshold.

    A query that did not find all its passages is a failure. If there are thresholds, such a query is `skipped`
    instead, and only thresholds that were not reached are failures.
    """
    judged = thresholds.judge(evaluation)
    suite = Element("testsuite", name=SUITE)
    for result in evaluation.results:
        case = _add_case(suite, result.golden.name, result.duration_s)
        missed = [(describe(verdict.expectation), verdict.miss) for verdict in result.verdicts if verdict.miss]
        if not missed:
            continue
        lines = [f"{expected}: {miss.message}" for expected, miss in missed]
        report = SubElement(case, "skipped" if judged else "failure", message=_fit(lines[0]))
        if not judged:
            report.set("type", missed[0][1].code)
        report.text = _fit("\n".join([f"query: {result.golden.query}", *lines]))
    for threshold in judged:
        name = f"{threshold.metric}@{evaluation.scope.k} is at least {threshold.least:g}"
        case = _add_case(suite, name, 0.0)
        if not threshold.is_passed:
            SubElement(case, "failure", message=f"it is {threshold.reached:.4f}", type="threshold")
    for kind, attribute in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    suite.set("errors", "0")
    suite.set("time", f"{sum(result.duration_s for result in evaluation.results):.3f}")
    root = Element("testsuites")
    root.append(suite)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _add_case(suite: Element, name: str, duration_s: float) -> Element:
    return SubElement(suite, "testcase", classname=SUITE, name=_fit(name), time=f"{duration_s:.3f}")


def _fit(text: str) -> str:
    return _UNFIT.sub(" ", text)
