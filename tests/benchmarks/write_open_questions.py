"""Twenty questions on the sample database, each open in one known way, as a folder for ``quorum eval``.

    python -m tests.benchmarks.write_open_questions FOLDER
    quorum eval run ambrosia --data FOLDER --model …

Each question has a gold query for every reading: where a period ends, whether ties count, of what a
percentage is, what a missing value means, what one row stands for, which date decides, whether case matters,
whether repeated things count once.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from quorum.tools.sample import sample_database

QUESTIONS = Path(__file__).with_name("open_questions.jsonl")


def write(folder: Path) -> Path:
    """Write the questions and their database, in the layout of ``quorum.evals.suites.ambrosia``."""
    databases = folder / "databases"
    databases.mkdir(parents=True, exist_ok=True)
    shutil.copy(QUESTIONS, folder / "questions.jsonl")
    sample_database(folder).replace(databases / "shop.sqlite")
    return folder


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
