"""Measures how often a sentence about a passage is judged wrongly: false ones as grounded, fair ones as ungrounded.

    python -m tests.bench.bench_claims

The sentences are those of `tests.core.answers.statements`, in which most of the false ones keep the passage's words
and change one thing. They are no sample of what models write: the rates compare one set of rules with another.
"""

from svc_daemon.core.answers.claims import Reference, is_borne_out
from tests.bench.machines import report
from tests.core.answers.passages import passage
from tests.core.answers.statements import ALARMS, FOUND_OUT, MISSED, PROVED, Statement


def supported(statements: list[Statement]) -> int:
    return sum(is_borne_out(each.sentence, [Reference(passage(each.passage))], "") for each in statements)


def main() -> None:
    fair, false = PROVED + ALARMS, FOUND_OUT + MISSED
    proofs, alarms = supported(false), len(fair) - supported(fair)
    rates = {"false_proofs": round(proofs / len(false), 3), "false_alarms": round(alarms / len(fair), 3)}
    report("claims", {"fair": len(fair), "false": len(false)}, rates)


if __name__ == "__main__":
    main()
