"""The part of a passage that a search shows."""

import pytest

from svc_cli.commands.search import best_window

LINES = ["alpha one", "beta two", "gamma three", "delta four", "Epsilon five"]


@pytest.mark.parametrize(
    ("stems", "start"),
    [
        (set(), 0),
        ({"missing"}, 0),
        ({"alpha"}, 0),
        ({"gamma"}, 1),
        ({"epsilon"}, 3),
        ({"gamma", "delta"}, 2),
        ({"alpha", "delta", "epsilon"}, 3),
    ],
)
def test_the_window_with_most_words_is_shown(stems: set[str], start: int) -> None:
    assert best_window(LINES, stems, 2) == start
