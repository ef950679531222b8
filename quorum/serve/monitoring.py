"""What a service has done: figures for Prometheus, and the audit log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

_ABOUT = {
    "questions_total": ("counter", "Questions that ended, by their status."),
    "question_seconds": ("summary", "Wall clock of questions."),
    "dollars_total": ("counter", "Dollars for model calls, as far as prices are known."),
    "model_calls_total": ("counter", "Model calls."),
    "queries_total": ("counter", "Database queries, those that were run by themselves among them."),
    "requests_total": ("counter", "HTTP requests, by the status of the response."),
    "questions_running": ("gauge", "Questions under way."),
    "streams_open": ("gauge", "Streams of events that are open."),
}


class Monitor:
    """Counts, and writes a line to the audit log for each question and query.

    Args:
        log: ``audit.jsonl``; a line says who did what, when, of which database, at what cost, with what
            outcome.
    """

    def __init__(self, log: Path) -> None:
        self.log, self.streams = log, 0
        self._counts, self._lock = defaultdict[str, float](float), Lock()

    def count(self, name: str, amount: float = 1, **label: Any) -> None:
        """Add to a counter, e.g. ``count("questions_total", status="answered")``."""
        text = ",".join(f'{key}="{value}"' for key, value in label.items())
        with self._lock:
            self._counts[f"{name}{{{text}}}" if text else name] += amount

    def ended(self, status: str, seconds: float, used: Mapping[str, float]) -> None:
        """Count a question that ended."""
        self.count("questions_total", status=status)
        for name, of in (("dollars", "max_usd"), ("model_calls", "max_calls"), ("queries", "queries")):
            self.count(f"{name}_total", used[of])
        self.count("question_seconds_sum", seconds)
        self.count("question_seconds_count")

    def audit(self, who: str, what: str, **about: Any) -> None:
        """Write a line to the audit log; blocks."""
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "who": who, "what": what, **about}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self.log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def text(self, running: int) -> str:
        """Return the figures in Prometheus's text format."""
        with self._lock:
            counts = dict(self._counts) | {"questions_running": running, "streams_open": self.streams}
        lines = []
        for name, (kind, meaning) in _ABOUT.items():
            lines += [f"# HELP quorum_{name} {meaning}", f"# TYPE quorum_{name} {kind}"]
            lines += [f"quorum_{key} {counts[key]:.10g}" for key in counts if key.startswith(name)]
        return "\n".join(lines) + "\n"
