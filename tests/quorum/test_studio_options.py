"""Studio's form starts from what the user set, every setting of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from quorum.graph.options import RunOptions

SET = {
    "QUORUM_VOTES": "5",
    "QUORUM_MAX_USD": "0.5",
    "QUORUM_MAX_CALLS": "7",
    "QUORUM_DEADLINE": "9s",
    "QUORUM_STRATEGY": "wma",
    "QUORUM_TEMPERATURE": "0.1",
    "QUORUM_QUERY_TIMEOUT": "3s",
    "QUORUM_MAX_ROWS": "11",
    "QUORUM_SCHEMA_TOKENS": "900",
    "QUORUM_LINK_ABOVE": "901",
    "QUORUM_SEED": "4",
    "QUORUM_RECIPE": "recap",
    "QUORUM_SWITCHES": '{"syntax": false}',
    "QUORUM_PRICES": '{"offline": {"input": 1.0, "output": 2.0}}',
}


def test_studio_starts_from_the_users_settings(tmp_path: Path, root: Path) -> None:
    code = (
        "from quorum.studio import StudioOptions, recipe;"
        "print(StudioOptions().model_dump_json(), 'retrieve_syntax' in recipe.nodes)"
    )
    environment = os.environ | SET | {"PYTHONPATH": str(root)}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shown, _, wired = ran.stdout.strip().rpartition(" ")
    options = json.loads(shown)
    assert set(options) == set(RunOptions.model_fields)
    assert (options["votes"], options["max_usd"], options["max_calls"], options["deadline"]) == (
        5,
        0.5,
        7,
        9.0,
    )
    assert (options["strategy"], options["temperature"], options["query_timeout"]) == ("wma", 0.1, 3.0)
    assert (options["max_rows"], options["schema_tokens"], options["link_above"]) == (11, 900, 901)
    assert (options["seed"], options["switches"]) == (4, {"syntax": False})
    assert options["prices"]["offline"]["output"] == 2.0
    assert wired == "False", "the graph is built with the user's switches"
