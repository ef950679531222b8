"""The examples run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAYS = {
    "ask.py": ["answered", "SELECT", "Every step:"],
    "langgraph_object.py": ["Consensus:", "SELECT"],
    "guard_only.py": ["pass    SELECT name", "refused WITH gone", "refused SELECT pg_read_file"],
}


def test_every_example_is_tested(root: Path) -> None:
    assert {path.name for path in (root / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example(name: str, root: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(root / "examples" / name)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for words in SAYS[name]:
        assert words in result.stdout
