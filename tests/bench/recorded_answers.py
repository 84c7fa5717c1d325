"""Runs the daemon, and writes the features of all that may answer each question to the file that BENCH_RECORD names."""

import json
import os
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from svc_daemon.core.answers import extractive_answers
from svc_daemon.core.answers.candidates import Asked, Scored
from svc_daemon.core.answers.chances import Judge
from svc_daemon.core.answers.passages import Passage

_choose = extractive_answers.choose_surest


def record_and_choose(
    asked: Asked, passages: Sequence[Passage], worthy: Sequence[bool], found: Sequence[Scored], best: Scored | None
) -> tuple[list[Scored], list[Scored]]:
    judge = Judge(asked, found, worthy)
    candidates = [
        {"shown": each.shown, "document": passages[each.passage].document, "features": _summed(judge.features(at))}
        for at, each in enumerate(found)
        if judge.may_be(at)
    ]
    line = {"question": asked.question, "candidates": candidates, "silence": _summed(judge.silence())}
    # What names nothing and has no near-twin is answered by other rules, too.
    if asked.needs or asked.has_twins:
        with Path(os.environ["BENCH_RECORD"]).open("a", encoding="utf-8") as lines:
            lines.write(f"{json.dumps(line)}\n")
    return _choose(asked, passages, worthy, found, best)


def _summed(features: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for name, value in features:
        sums[name] += value
    return sums


def main() -> None:
    extractive_answers.choose_surest = record_and_choose
    module, *sys.argv[1:] = sys.argv[1:]
    sys.argv[0] = module
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
