"""Tables and lines of text output, and the part of a passage that a search shows."""

from typing import Any

import pytest

from svc_cli.commands.daily.search import best_window, explanation
from svc_cli.console import Console
from svc_cli.render import cut, duration, fields, place_of, size, state_of, table, width
from tests.cli.terminals import MakeConsole, RunSvc, Terminal


def test_columns_fit_their_widest_cell_and_are_not_cut_without_a_terminal(make_console: MakeConsole) -> None:
    long = "x" * 300
    shown = table(make_console().console, ("a", "title"), [("1", long), ("two words", "漢字")])
    assert shown == f"a          title\n1          {long}\ntwo words  漢字"


def on_terminal(columns: int, heads: tuple[str, ...], *rows: tuple[str | None, ...], fold: bool = False) -> list[str]:
    """Return the lines of a table on a terminal of this width, without colours."""
    environ = {"NO_COLOR": "1", "COLUMNS": str(columns)}
    return table(Console(Terminal(), Terminal(), environ), heads, rows, fold=fold).split("\n")


def test_ids_are_shortened_first_and_remain_distinct() -> None:
    rows = [("src_01m81nywyax2k70ggze3mxk36g", "A title of some words"), ("src_01m81nywybt3g70fc85khe0yn1", "Other")]
    shown = on_terminal(40, ("source", "title"), *rows)
    assert shown[1:] == ["src_01m81nywyax2…  A title of some words", "src_01m81nywybt3…  Other"]


@pytest.mark.parametrize(("letters", "shown"), ((20, f"{'a' * 17}…  {'t' * 20}"), (60, f"{'a' * 15}…  {'t' * 21}…")))
def test_the_title_is_cut_last_and_only_as_far_as_needed(letters: int, shown: str) -> None:
    assert on_terminal(40, ("why", "title"), ("a" * 30, "t" * letters))[1] == shown


def test_column_without_values_is_as_wide_as_its_heading() -> None:
    heads, line = on_terminal(30, ("state", "pending", "folder"), ("on", None, "f" * 40))
    assert line.index("f") == heads.index("folder")


def test_folded_column_wraps_within_the_column() -> None:
    shown = on_terminal(24, ("", ""), ("daemon", "one two three four"), fold=True)
    assert shown == ["daemon  one two three", "        four"]


def test_cell_replaces_newlines_and_escapes_control_characters(make_console: MakeConsole) -> None:
    assert table(make_console().console, ("t",), [("a\nb\x1b[2J",)]) == "t\na b\\x1b[2J"
    assert on_terminal(80, ("t",), ("a\u2028b",)) == ["t", "a\\u2028b"]


def test_fields_omit_missing_and_empty_values(make_console: MakeConsole) -> None:
    pairs: list[tuple[str, object]] = [("id", "src_1"), ("error", None), ("tags", []), ("ready", False), ("pages", 0)]
    assert fields(make_console().console, pairs) == "id     src_1\nready  no\npages  0"


def test_place_of_a_passage_is_its_page_or_its_lines() -> None:
    places = {(3, 1, 2): "page 3", (None, 4, 4): "line 4", (None, 4, 9): "lines 4-9", (None, None, None): ""}
    for (page, first, last), place in places.items():
        assert place_of({"page": page, "line_start": first, "line_end": last}) == place


@pytest.mark.parametrize(("confidence", "certain"), [(1.0, "99%"), (0.995, "99%"), (0.87, "87%"), (0.29, "29%")])
def test_text_from_a_scan_is_never_quite_certain(confidence: float, certain: str) -> None:
    assert place_of({"page": 3, "ocr": True, "confidence": confidence}) == f"page 3 (scan, {certain} certain)"


def test_a_source_has_one_word_for_its_state() -> None:
    states = {(True, "active"): "ready", (False, "active"): "syncing"}
    states |= {(False, status): status for status in ("queued", "failed")}
    assert {key: state_of({"ready": key[0], "status": key[1]}) for key in states} == states


def test_sizes_and_durations_are_shown_in_a_fitting_unit() -> None:
    sizes = {None: "", 0: "0 B", 1023: "1023 B", 1024: "1.0 KB", 10 * 1024: "10 KB", 26_214_400: "25 MB"}
    assert {size_bytes: size(size_bytes) for size_bytes in sizes} == sizes
    durations = {0: "0 s", 59: "59 s", 60: "1 min", 7200: "2 h", 200_000: "2 d"}
    assert {seconds: duration(seconds) for seconds in durations} == durations


def test_width_counts_terminal_columns_and_cut_text_fits_them() -> None:
    widths = {"abc": 3, "漢字": 4, "e\u0301": 1, "\U0001f469\u200d\U0001f4bb": 4}
    assert {text: width(text) for text in widths} == widths
    for text, shown in (("abc", "abc"), ("abcd", "ab…"), ("漢字", "漢…")):
        assert cut(text, 3) == shown
        assert width(shown) <= 3


def test_best_window_is_the_one_with_most_query_words() -> None:
    lines = ["alpha one", "beta two", "gamma three", "delta four", "Epsilon five"]
    windows = {"": 0, "missing": 0, "alpha": 0, "gamma": 1, "epsilon": 3, "gamma delta": 2, "alpha delta epsilon": 3}
    assert {stems: best_window(lines, set(stems.split()), 2) for stems in windows} == windows
    # What is found is in the middle, since an answer often follows it.
    windows = {"missing": 0, "alpha": 0, "beta": 0, "gamma": 1, "delta": 2, "epsilon": 2, "beta gamma": 0}
    assert {stems: best_window(lines, set(stems.split()), 3) for stems in windows} == windows


BY_BOTH = """\
found by  rank  scored
words     3     bm25 7.31     covers 62% of the query
- umber         idf 3.20      in title, text
- quay          idf 2.05
meaning   1     cosine 0.712  minilm@1
both      2     fused 0.0323"""
BY_MEANING = """\
found by  rank  scored
words                         covers 0% of the query
meaning   4     cosine 0.300  minilm@1"""


def test_explanation_is_a_table_of_how_the_passage_was_found(make_console: MakeConsole) -> None:
    terms = [{"term": "umber", "idf": 3.2, "parts": ["title", "text"]}, {"term": "quay", "idf": 2.05, "parts": []}]
    keyword, semantic = {"rank": 3, "bm25": 7.31}, {"rank": 1, "cosine": 0.712, "model": "minilm@1"}
    none: dict[str, Any] = {"rank": 1, "fused": None, "terms": [], "keyword": None, "semantic": None}
    both = {"rank": 2, "fused": 0.03226, "coverage": 0.62, "terms": terms, "keyword": keyword, "semantic": semantic}
    words = {**none, "coverage": 1.0, "keyword": {**keyword, "rank": 1}}
    by_words = "found by  rank  scored\nwords     1     bm25 7.31  covers 100% of the query"
    meaning = {**none, "coverage": 0.0, "semantic": {**semantic, "rank": 4, "cosine": 0.3}}
    for explain, shown in ((both, BY_BOTH), (words, by_words), (meaning, BY_MEANING)):
        assert explanation(make_console().console, explain) == shown


def test_search_k_in_the_settings_is_limited_to_1_to_50(svc: RunSvc) -> None:
    assert svc("config", "set", "search.k", "500").exit == 0
    refused = svc("search", "umber")
    assert refused.exit == 2
    assert "search.k is 1 to 50, not 500" in refused.stderr
