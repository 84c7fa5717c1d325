"""How often a sentence about a passage is judged wrongly: false ones as grounded, fair ones as ungrounded.

The sentences are those of `tests.core.answers.statements`, in which most of the false ones keep the passage's words
and change one thing. They are no sample of what models write: the rates compare one set of rules with another.
"""

from svc_daemon.core.answers.claims import Reference, is_borne_out
from tests.bench.harness import read_options, report
from tests.core.answers.passages import passage
from tests.core.answers.statements import ALARMS, FOUND_OUT, MISSED, PROVED


def main() -> None:
    options = read_options(__doc__, base=None)
    rows = []
    for kind, statements in (("fair", PROVED + ALARMS), ("false", FOUND_OUT + MISSED)):
        grounded = sum(is_borne_out(each.sentence, [Reference(passage(each.passage))], "") for each in statements)
        share = round(grounded / len(statements), 3)
        rows.append({"sentences": kind, "count": len(statements), "grounded": grounded, "share": share})
    report("claims", options, rows)


if __name__ == "__main__":
    main()
