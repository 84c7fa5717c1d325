"""The part of a passage that a search shows, and why it was found."""

from typing import Any

from svc_cli.commands.search import best_window, explanation
from tests.cli.consoles import MakeConsole, RunSvc


def test_the_window_with_most_words_is_shown() -> None:
    lines = ["alpha one", "beta two", "gamma three", "delta four", "Epsilon five"]
    windows = {"": 0, "missing": 0, "alpha": 0, "gamma": 1, "epsilon": 3, "gamma delta": 2, "alpha delta epsilon": 3}
    assert {stems: best_window(lines, set(stems.split()), 2) for stems in windows} == windows


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


def test_an_explanation_is_a_table_of_what_found_the_passage(make_console: MakeConsole) -> None:
    terms = [{"term": "umber", "idf": 3.2, "parts": ["title", "text"]}, {"term": "quay", "idf": 2.05, "parts": []}]
    keyword, semantic = {"rank": 3, "bm25": 7.31}, {"rank": 1, "cosine": 0.712, "model": "minilm@1"}
    none: dict[str, Any] = {"rank": 1, "fused": None, "terms": [], "keyword": None, "semantic": None}
    both = {"rank": 2, "fused": 0.03226, "coverage": 0.62, "terms": terms, "keyword": keyword, "semantic": semantic}
    words = {**none, "coverage": 1.0, "keyword": {**keyword, "rank": 1}}
    by_words = "found by  rank  scored\nwords     1     bm25 7.31  covers 100% of the query"
    meaning = {**none, "coverage": 0.0, "semantic": {**semantic, "rank": 4, "cosine": 0.3}}
    for explain, shown in ((both, BY_BOTH), (words, by_words), (meaning, BY_MEANING)):
        assert explanation(make_console().console, explain) == shown


def test_a_number_of_results_of_the_settings_has_the_range_of_the_flag(svc: RunSvc) -> None:
    assert svc("config", "set", "search.k", "500").exit == 0
    refused = svc("search", "umber")
    assert (refused.exit, "search.k is 1 to 50, not 500" in refused.stderr) == (2, True)
