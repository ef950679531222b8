"""An option is declared once: flag, variable, quorum.toml, Studio's form and settings page follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quorum.cli import cli
from quorum.commands.ask import command
from quorum.commands.options import Flag
from quorum.settings import Settings
from tests.quorum.conftest import python

BEFORE = "    seed: int = option("
ADDED = '    caution: Literal["low", "high"] = option("low", "how careful the agents are", on_resume=True)\n'

SCRIPT = """
import json, sys, types
from pathlib import Path

import quorum.graph

declarations = Path(sys.argv[1], "graph", "options.py")
source = declarations.read_text()
assert source.count(sys.argv[2]) == 1
module = types.ModuleType("quorum.graph.options")
sys.modules[module.__name__] = quorum.graph.options = module
source = source.replace(sys.argv[2], sys.argv[3] + sys.argv[2])
exec(compile(source, str(declarations), "exec"), module.__dict__)

from click.testing import CliRunner
from quorum.cli import cli
from quorum.settings import resumed_options
from quorum.settings import Settings
from quorum.studio import options_for
from tests.quorum.options_table import table

asked = Settings(database="sample", models="offline")
kept = {"question": "q", "options": asked.run_options().as_dict()}
print(json.dumps({
    "help": CliRunner().invoke(cli, ["ask", "--help"]).stdout,
    "eval help": CliRunner().invoke(cli, ["eval", "run", "--help"]).stdout,
    "wrong flag": CliRunner().invoke(cli, ["ask", "q", "--caution", "none"]).stderr,
    "set": [asked.caution, asked.provenance()["caution"], asked.run_options().caution],
    "form": options_for("quorum").model_json_schema()["properties"]["caution"],
    "resumed": resumed_options(kept, Settings(caution="high")).caution,
    "row": [line for line in table().splitlines() if "caution" in line],
}))
"""


def found(root: Path, **variables: str) -> dict[str, Any]:
    """Return what a process sees in which the option is declared."""
    ran = python(root, "-c", SCRIPT, str(root), BEFORE, ADDED, env=variables, check=True)
    seen: dict[str, Any] = json.loads(ran.stdout)
    return seen


@pytest.mark.heavy
def test_a_new_option_is_declared_once(root: Path, workplace: Path) -> None:
    seen = found(root, QUORUM_CAUTION="high")
    for page in ("help", "eval help"):
        assert "--caution NAME" in seen[page]
        assert "how careful the agents are; one of low, high" in " ".join(seen[page].split())
    assert "caution = 'none' (flag): must be 'low' or 'high'" in seen["wrong flag"]
    assert seen["set"] == ["high", "environment QUORUM_CAUTION", "high"]
    assert seen["form"] == {
        "default": "high",
        "description": "how careful the agents are",
        "enum": ["low", "high"],
        "title": "Caution",
        "type": "string",
    }
    assert seen["resumed"] == "high"
    assert seen["row"] == ["| `caution` | `low` | how careful the agents are; one of `low`, `high` |"]
    (workplace / "quorum.toml").write_text('caution = "high"\n')
    assert found(root)["set"] == ["high", "quorum.toml", "high"]


def test_every_option_but_the_key_has_a_flag_whose_help_says_the_default() -> None:
    flags = {parameter.name for parameter in command.params if isinstance(parameter, Flag)}
    assert flags == set(Settings.model_fields) - {"api_key"}
    shown = " ".join(CliRunner().invoke(cli, ["ask", "--help"]).stdout.split())
    for name in ("votes", "strategy", "retrieval", "home"):
        option, default = Settings.declared()[name], Settings.model_fields[name].default
        assert f"{option.explanation.replace('`', '')} [{option.shown(default)}]" in shown
