"""Lanes: which kind of document is begun next, and how large a wave is."""

from svc_daemon.core.lanes import LANES, SINGLE, SUSPECT, WAVE, fill, in_turn

#: What is at work, what was served last, and the lanes that are tried, in order; two children of each kind are allowed.
TURNS: list[tuple[dict[str, int], dict[str, int], list[str]]] = [
    ({}, {}, [WAVE, SINGLE, SUSPECT]),
    ({}, {WAVE: 3, SINGLE: 1, SUSPECT: 2}, [SINGLE, SUSPECT, WAVE]),
    ({WAVE: 1}, {}, [SINGLE, SUSPECT, WAVE]),
    ({WAVE: 2}, {}, [SINGLE, SUSPECT]),
    ({SINGLE: 1}, {}, [WAVE, SUSPECT, SINGLE]),
    ({SINGLE: 2}, {}, [WAVE]),
    ({SUSPECT: 1}, {}, [WAVE, SINGLE]),
    ({SUSPECT: 1, SINGLE: 1}, {}, [WAVE]),
    ({WAVE: 2, SINGLE: 1}, {SUSPECT: 1}, [SUSPECT, SINGLE]),
    ({WAVE: 2, SINGLE: 2}, {}, []),
]


def test_lanes_take_turns_and_no_two_suspects_are_read_together() -> None:
    for at_work, served, expected in TURNS:
        assert in_turn(at_work, served, 2) == expected, (at_work, served)
    assert in_turn({}, {}, 1) == list(LANES) and in_turn({WAVE: 1}, {}, 1) == [SINGLE, SUSPECT]


def test_a_wave_is_bounded_by_its_bytes_and_has_at_least_one_document() -> None:
    for sizes, most, count in [([], 10, 0), ([99], 10, 1), ([4, 6, 1], 10, 2), ([4, 7], 10, 1), ([0] * 64, 10, 64)]:
        assert fill(sizes, most) == count, sizes
