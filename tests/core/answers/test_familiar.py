"""The lists of common English words."""

from svc_daemon.core.answers.familiar import RARE, chance_of, is_familiar
from svc_daemon.core.text.words import stem_of


def test_what_is_said_anywhere_is_likelier_than_what_is_said_on_some_subjects() -> None:
    for common, rarer in [("find", "colour"), ("colour", "lamp"), ("lamp", "turquoise")]:
        assert chance_of(stem_of(common)) > chance_of(stem_of(rarer))


def test_what_is_in_no_list_is_rare() -> None:
    assert chance_of(stem_of("turquoise")) == RARE
    assert (is_familiar("turquoise"), is_familiar("Leuchte"), is_familiar("colours")) == (False, False, True)
