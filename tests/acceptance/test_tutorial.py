"""What docs/tutorial.md shows: each command, in order, on a machine that has never run `svc`."""

import re

from tests.acceptance.installations import Installation
from tests.acceptance.recipes import run_recipe
from tests.rules.modules import ROOT
from tests.rules.transcripts import fences

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


def test_the_commands_of_the_tutorial_do_what_it_says(installation: Installation) -> None:
    for fence in re.finditer(r"^```(sh|console)\n.*?^```$", PAGE, re.DOTALL | re.MULTILINE):
        if fence[1] == "sh":  # as a whole, since it has documents in it
            ended = run_recipe(installation, fence[0].removeprefix("```sh\n").removesuffix("```"))
            assert ended.returncode == 0, ended.stderr
            continue
        for shown in (command for block in fences(fence[0]) for command in block.commands):
            ended = run_recipe(installation, shown.line)
            printed = ended.stderr + ended.stdout
            assert shown.promises(printed), f"{shown.line}\npromises {shown.output}, printed\n{printed}"
