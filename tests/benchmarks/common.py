"""Arguments, questions and figures that benchmarks have in common."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.suites import load_suite

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("QUORUM_DATA", "../shared/data"))
LOCAL_SUITES = ("spider1", "defog", "spider2-local")
"""Suites whose databases are files."""


def arguments(doc: str | None, *names: str, **flags: Any) -> argparse.Namespace:
    """Return what the command line gives.

    Args:
        names: Positional arguments, each of which may be missing.
        flags: With their defaults; a list's may be given several times, a type says that there is none.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    for name in names:
        parser.add_argument(name, nargs="?")
    for name, default in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, list):
            parser.add_argument(flag, action="append", default=default)
        else:
            kind, usual = (default, None) if isinstance(default, type) else (type(default), default)
            parser.add_argument(flag, type=kind, default=usual)
    return parser.parse_args()


def by_database(suites: Iterable[str], data: Path) -> dict[str, list[EvalQuestion]]:
    """Return the questions of suites by the URL of their database."""
    found: dict[str, list[EvalQuestion]] = {}
    for suite in suites:
        for question in load_suite(suite, data / suite).questions:
            found.setdefault(question.url, []).append(question)
    return found


def spread(values: Iterable[float]) -> str:
    """Return the median, the ninth tenth, the last hundredth and the worst of figures."""
    figures = sorted(values)
    tail = (f"p{share} {figures[len(figures) * share // 100]:.1f}" for share in (90, 99))
    return ", ".join((f"median {median(figures):.1f}", *tail, f"worst {figures[-1]:.1f}"))
