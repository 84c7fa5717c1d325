"""Tests lanes: which lane starts a child process next, and how large a wave is."""

import pytest

from svc_daemon.core.lanes import FEW, LANES, PROMPT, SCAN, SINGLE, SUSPECT, WAVE, choose, fill, in_turn

#: The child processes by lane, the last turn of each lane, and the order of lanes expected. The limit is 2 children.
TURNS: list[tuple[dict[str, int], dict[str, int], list[str]]] = [
    ({}, {}, [PROMPT, WAVE, SINGLE, SUSPECT, SCAN]),
    ({}, {PROMPT: 4, WAVE: 3, SINGLE: 1, SUSPECT: 2, SCAN: 5}, [SINGLE, SUSPECT, WAVE, PROMPT, SCAN]),
    ({WAVE: 1}, {}, [PROMPT, SINGLE, SUSPECT, SCAN, WAVE]),
    ({WAVE: 2, PROMPT: 1, SCAN: 1}, {}, [SINGLE, SUSPECT, PROMPT]),
    ({PROMPT: 2, SCAN: 1}, {}, [WAVE, SINGLE, SUSPECT]),
    ({SINGLE: 1, SCAN: 1}, {}, [PROMPT, WAVE, SUSPECT, SINGLE]),
    ({SINGLE: 2, SCAN: 1}, {}, [PROMPT, WAVE]),
    ({SUSPECT: 1, SCAN: 1}, {}, [PROMPT, WAVE, SINGLE]),
    ({SUSPECT: 1, SINGLE: 1}, {}, [PROMPT, WAVE, SCAN]),
    ({WAVE: 2, SINGLE: 1, SCAN: 1}, {SUSPECT: 1}, [PROMPT, SUSPECT, SINGLE]),
    ({PROMPT: 2, WAVE: 2, SINGLE: 2}, {}, [SCAN]),
]


def test_lanes_take_turns_and_no_two_suspects_are_read_together() -> None:
    for at_work, served, expected in TURNS:
        assert in_turn(at_work, served, 2) == expected, (at_work, served)
    assert in_turn({}, {}, 1) == list(LANES) and in_turn({WAVE: 1}, {}, 1) == [PROMPT, SINGLE, SUSPECT, SCAN]


@pytest.mark.parametrize(
    ("is_small", "together", "lane"),
    [
        (True, 1, PROMPT),
        (True, FEW, PROMPT),
        (True, FEW + 1, WAVE),
        (False, 99, SINGLE),
    ],
)
def test_small_documents_share_a_child_and_bulk_uploads_have_their_own_lane(
    is_small: bool, together: int, lane: str
) -> None:
    assert choose(is_small=is_small, together=together) == lane


@pytest.mark.parametrize(
    ("sizes", "most", "count"), [([], 10, 0), ([99], 10, 1), ([4, 6, 1], 10, 2), ([4, 7], 10, 1), ([0] * 64, 10, 64)]
)
def test_a_wave_has_at_least_one_document_and_limited_bytes(sizes: list[int], most: int, count: int) -> None:
    assert fill(sizes, most) == count
