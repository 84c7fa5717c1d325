"""What docs/how-to/eval.md shows: a folder, what it must answer, and a build that fails otherwise."""

import re
from xml.etree import ElementTree

from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation
from tests.acceptance.recipes import run_recipe
from tests.acceptance.sync_folders import write
from tests.rules.transcripts import shown_commands

PAGE = (ROOT / "docs" / "how-to" / "eval.md").read_text(encoding="utf-8")
EXPECTATIONS, RECIPE = re.findall(r"^```(?:yaml|sh)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
HANDBOOK = """# Handbook

## Vacation

Full-time employees get 30 days of vacation a year.

## Garage

It opens at seven.
"""
PRICING = "# Prices\n\nThe plan costs five crowns a month, to be paid on the first day.\n"


def test_a_build_fails_when_an_expectation_is_broken(installation: Installation) -> None:
    docs, golden = installation.root / "docs", installation.root / "golden.yaml"
    write(docs, "handbook.md", HANDBOOK)
    write(docs, "pricing.md", PRICING)
    golden.write_text(EXPECTATIONS)
    passed = run_recipe(installation, RECIPE)
    assert passed.returncode == 0, passed.stderr
    shown = next(command for command in shown_commands(PAGE) if command.output)
    assert shown.promises(installation.svc(*shown.line.split()[1:]).stdout)
    golden.write_text(EXPECTATIONS.replace("30 days", "31 days"))
    broken = run_recipe(installation, RECIPE)
    assert broken.returncode == 3
    assert 'handbook.md > Vacation: "31 days": the text is in none of its passages' in broken.stdout
    (report,) = ElementTree.parse(installation.root / "eval.xml").getroot()
    assert (report.get("tests"), report.get("failures")) == ("2", "1")
