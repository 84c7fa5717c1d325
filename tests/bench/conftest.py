"""Running the programs of this folder."""

import importlib
import sys
from collections.abc import Callable

import pytest

RunMain = Callable[..., str]


@pytest.fixture
def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunMain:
    """Run the program of one of this folder's modules in this process, which knows how to fork; what it prints."""

    def run(name: str, *words: object) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        importlib.import_module(f"tests.bench.{name}").main()
        return capsys.readouterr().out

    return run
