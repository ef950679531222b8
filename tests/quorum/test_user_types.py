"""What a type checker tells somebody who uses the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from quorum import ask_sync
answer = ask_sync("How many customers are there?", db="sample")
reveal_type(answer.confidence)
"""


@pytest.mark.heavy
@pytest.mark.timeout(240)  # the first run reads every dependency
def test_a_users_three_lines_have_real_types(root: Path, workplace: Path) -> None:
    (workplace / "script.py").write_text(SCRIPT)
    cache = root / ".mypy_cache" / "user"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "script.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 'Revealed type is "float"' in result.stdout, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout
