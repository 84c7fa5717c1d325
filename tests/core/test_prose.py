"""What reads as a sentence, and what is a row, code, a heading or a page's furniture."""

import pytest

from svc_daemon.core.prose import CODE, FRAGMENT, ROW, cost_of, fences_of
from svc_daemon.core.sentences import Span

CASES = [
    ("The garage opens at seven.", 0),
    ("Set `SVC_LIMIT_X_Y=3; --force {a}` before it starts.", 0),
    ("A sentence of seven words without end", 0),
    ("Bezahlt wird am Monatsende.", 0),
    ("Oslo | 8-16", ROW),
    ("Opening hours", FRAGMENT),
    ("rows = {name: size for name in names if size >= 3};", CODE),
    ('curl -H "Authorization: $KEY" --json \'{"a": 1}\' $URL/v1/x', CODE),
    ("Contents .......... 4", CODE),
    ("© 2024 Harbour Ltd. All rights reserved.", CODE),
    ("Page 3 of 12", CODE),
]


@pytest.mark.parametrize(("text", "cost"), CASES)
def test_what_a_sentence_loses_by_what_it_is(text: str, cost: float) -> None:
    assert cost_of(text, Span(0, len(text)), []) == cost


def test_what_stands_between_fences_is_code_whatever_it_says() -> None:
    text = "Do this.\n\n```sh\nThe garage opens at seven.\n```\n\nThen go home."
    fences = fences_of(text)
    inside = text.index("The garage")
    assert cost_of(text, Span(inside, inside + 26), fences) == CODE
    assert cost_of(text, Span(text.index("Then"), len(text)), fences) == 0
    assert [text[fence.end - 3 : fence.end] for fence in fences] == ["```"]
