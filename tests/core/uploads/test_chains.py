"""Which objects together are the received bytes of a session."""

from itertools import permutations

from svc_daemon.core.uploads.chains import Chain, PartObject, chain_of, object_name, parse_object

NONCE, HASH = "0123456789abcdef" * 2, "f" * 64

#: Objects as first byte and size: the objects of the chain, as first byte, size and skipped bytes.
CHAINS: dict[tuple[tuple[int, int], ...], list[tuple[int, int, int]]] = {
    (): [],
    ((0, 5),): [(0, 5, 0)],
    ((0, 5), (5, 5)): [(0, 5, 0), (5, 5, 0)],
    # A gap ends the chain, and what has no beginning is none.
    ((0, 5), (6, 5)): [(0, 5, 0)],
    ((1, 5),): [],
    # Sent twice, by requests on two nodes.
    ((0, 5), (0, 5)): [(0, 5, 0)],
    ((0, 5), (0, 9)): [(0, 9, 0)],
    ((0, 5), (3, 5)): [(0, 5, 0), (3, 5, 2)],
    ((0, 9), (3, 5)): [(0, 9, 0)],
    ((0, 5), (2, 9), (4, 2), (11, 1)): [(0, 5, 0), (2, 9, 3), (11, 1, 0)],
}


def test_a_chain_has_no_gap_and_each_byte_once_whatever_the_order() -> None:
    for given, expected in CHAINS.items():
        parts = [PartObject(f"{number}", *each) for number, each in enumerate(given)]
        for order in permutations(parts):
            chain = chain_of(order)
            assert [(link.part.first, link.part.size_bytes, link.skip_bytes) for link in chain.links] == expected, given
            assert chain.size_bytes == sum(size - skip for _, size, skip in expected), given
        assert len({chain_of(order) for order in permutations(parts)}) == 1, "every node takes the same objects"


def test_a_name_says_what_is_in_the_object_and_nothing_else_is_one() -> None:
    for sha256 in (None, HASH):
        name = object_name(7, 10**12, NONCE, sha256)
        assert parse_object(name) == PartObject(name, 7, 10**12, sha256)
        for other in (name[1:], name + "-", name.upper(), f"x{name}", f"{name}\n"):
            assert parse_object(other) is None, other
    names = [object_name(first, 1, NONCE, None) for first in (0, 9, 10, 10**12)]
    assert sorted(names) == names


def test_only_a_single_object_knows_the_hash_of_all() -> None:
    first, second = PartObject("a", 0, 5, HASH), PartObject("b", 5, 5)
    alone = chain_of([first])
    both = alone.followed_by(second)
    assert (Chain().sha256, alone.sha256, both.sha256) == (None, HASH, None)
    assert both == chain_of([second, first])
