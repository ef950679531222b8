"""From process start to the first model request, against what importing langgraph and langchain_openai takes.

Starts, in turn, a process that imports the two libraries and ends, and ``quorum ask`` on the sample
database with the offline model, which ends with its first request to the model. Prints
milliseconds of wall clock and of processor time, and the ratio of the medians.

    python -m tests.benchmarks.bench_startup [--runs 7] [--bytecode]

``--bytecode`` compiles what is imported beforehand and has Python use it, as on a user's machine, where
the environment says otherwise (``PYTHONDONTWRITEBYTECODE``).
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.common import ROOT, arguments, spread

LIBRARIES = "import os, langgraph.graph, langchain_openai; os._exit(0)"
ASK = """
import importlib.util, os, sys

class Watch:
    "When the offline model is loaded, has its first request end the process."

    def find_spec(self, name, path, target=None):
        if name != "quorum.tools.offline.model":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.OfflineChatModel._generate = lambda *_, **__: os._exit(42)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Watch())
sys.argv = ["quorum", "ask", "How many customers are there?", "--db", "sample", "--model", "offline"]
from quorum.cli import main

main()
"""


def measured(code: str, status: int, folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of wall clock and of processor that a process takes to end with ``status``."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        sys.exit(done.stderr.decode())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * wall, 1000 * spent


def main(runs: int, bytecode: bool) -> None:
    """Run both in turn and print the figures."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
    cases = {"importing the libraries": (LIBRARIES, 0), "quorum ask, first request": (ASK, 42)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if bytecode:
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            env["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        for turn in range(runs + 1):
            for case, (code, status) in cases.items():
                figures = measured(code, status, folder, env)
                if turn:  # the first makes the sample database and warms the disk's cache
                    found[case].append(figures)
    for case, figures in found.items():
        wall, spent = zip(*figures, strict=True)
        print(f"{case:<26} {spread(wall)} ms, of processor {spread(spent)} ms")
    libraries, asked = (statistics.median(wall for wall, _ in figures) for figures in found.values())
    print(f"ratio {asked / libraries:.2f}")


if __name__ == "__main__":
    main(**vars(arguments(__doc__, runs=7, bytecode=False)))
