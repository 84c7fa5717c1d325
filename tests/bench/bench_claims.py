"""How often a sentence about a passage is judged wrongly: false ones as grounded, fair ones as ungrounded.

The first sentences are those of `tests.core.answers.statements`, in which most of the false ones keep the words of the
passage and change one thing. They are no sample of what models write: the rates compare one set of rules with another.

Then come 500 sentences of `model_answers` about near-twins, unchanged, and 500 with one thing changed.
"""

from svc_daemon.core.answers.claims import Reference, is_borne_out
from tests.bench.harness import read_options, report
from tests.bench.model_answers import count_by_change, write_all
from tests.core.answers.passages import passage
from tests.core.answers.statements import ALARMS, FOUND_OUT, MISSED, PROVED


def main() -> None:
    options = read_options(__doc__, base=None, sentences=500)
    rows = []
    for kind, statements in (("fair", PROVED + ALARMS), ("false", FOUND_OUT + MISSED)):
        grounded = sum(is_borne_out(each.sentence, [Reference(passage(each.passage))], "") for each in statements)
        share = round(grounded / len(statements), 3)
        rows.append({"sentences": kind, "count": len(statements), "grounded": grounded, "share": share})
    for kind, written in count_by_change(write_all(options.sentences)).items():
        grounded = sum(is_borne_out(each.sentence, [Reference(each.passage)], "") for each in written)
        share = round(grounded / len(written), 3)
        rows.append({"sentences": kind, "count": len(written), "grounded": grounded, "share": share})
    report("claims", options, rows)


if __name__ == "__main__":
    main()
