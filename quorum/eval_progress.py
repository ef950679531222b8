"""An evaluation under way: its figures so far, and a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn
from rich.text import Text

from quorum import progress
from quorum.evals.records import Record
from quorum.evals.reports.format import percent
from quorum.evals.reports.frame import LINKING, Frame, answered, right, unscorable
from quorum.evals.running.verdicts import FAULT
from quorum.text import count, dollars, duration, one_line

LINE_SECONDS = 10.0
"""Between two lines where there is no terminal."""

_SUMS = ("model_calls", "input_tokens", "output_tokens", "cached_tokens", "queries")


class Tally:
    """The figures of an evaluation so far.

    Args:
        asked: Questions asked for.
        batch: There is no gold, so nothing is said of it.
        max_usd: Dollars for all questions, if they are limited.

    Attributes:
        records: Of the questions that ended, by id; a later one takes an earlier one's place.
        seconds: Wall clock of this process since ``begin``.
    """

    def __init__(
        self,
        asked: int,
        *,
        batch: bool = False,
        max_usd: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked, self.batch, self.max_usd = asked, batch, max_usd
        self.records: dict[str, Record] = {}
        self.earlier = 0
        self.right = 0
        self.measurable = False
        self.errors: Counter[str] = Counter()
        self.usd: float | None = 0.0
        self._clock = clock
        self._start = clock()

    def begin(self, earlier: Collection[Record]) -> None:
        """Start the clock. What earlier processes finished counts, but not for this one's speed."""
        for record in earlier:
            self.add(record)
        self.earlier = len(self.records)
        self._start = self._clock()

    def add(self, record: Record) -> None:
        """Count a question that has ended."""
        self.records[record.id] = record
        self.right += right(record)
        self.measurable |= record.match is not None
        if record.error:
            self.errors[record.error] += 1
        usd = record.usage.get("usd", 0.0)
        self.usd = None if usd is None or self.usd is None else self.usd + float(usd)

    @property
    def done(self) -> int:
        """Return the number of questions that ended, well or not."""
        return len(self.records)

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    @property
    def left_seconds(self) -> float | None:
        """Return the time until all have ended at the pace of this process; None until it has one."""
        new = self.done - self.earlier
        return self.seconds / new * (self.asked - self.done) if new else None

    def line(self) -> str:
        """Return one line: ETA, EX so far, cost, errors."""
        left = self.left_seconds
        eta = f"ETA {duration(left)}" if left is not None else "ETA –"
        ex = percent(self.right / self.done if self.measurable else None)
        score = "" if self.batch else f" · EX {ex}"
        return f"{eta}{score} · {self.cost} · {count(self.errors.total(), 'error')}"

    @property
    def cost(self) -> str:
        """Return the dollars so far, and those there are."""
        return dollars(self.usd) + (f" of ${self.max_usd:g}" if self.max_usd is not None else "")

    def summary(self) -> dict[str, Any]:
        """Return figures over the questions that ended, for JSON: shares are 0 to 1, None if unknown."""
        frame = Frame.of(self.records.values())
        ex = frame.mean("ex")
        return {
            "asked": self.asked,
            "ended": self.done,
            "finished": frame.count(lambda record: record.finished),
            "answered": frame.count(answered),
            "ex": ex.mean,
            "ex_se": ex.se,
            "unscorable": dict(Counter(record.gold for record in frame.records if unscorable(record))),
            "linking_questions": frame.count(lambda record: record.linking),
            **{name: frame.mean(name).mean for name in ("executes", "valid", *LINKING)},
            **{name: sum(int(it.usage.get(name) or 0) for it in frame.records) for name in _SUMS},
            "usd": self.usd,
            "seconds": round(self.seconds, 2),
            "errors": dict(self.errors.most_common()),
            "faults": [record.id for record in frame.records if record.error == FAULT],
            "with_fewer_candidates": frame.count(_lacks_candidates),
            "demonstration": frame.count(lambda record: record.demonstration) > 0,
        }

    def closing(self) -> list[str]:
        """Return the summary in lines for people, the most important first."""
        found = self.summary()
        ex, se = found["ex"], found["ex_se"]
        score = "not known" if ex is None else percent(ex) + (f" ± {100 * se:.1f}" if se is not None else "")
        tokens = found["input_tokens"] + found["output_tokens"]
        about = f"EX {score} · executes {percent(found['executes'])}"
        about = f"{found['answered']:,} answered" if self.batch else about
        lines = [
            f"{self.done:,} of {count(self.asked, 'question')}"
            f" · {about} · {count(found['model_calls'], 'model call')} · {tokens:,} tokens · {self.cost}"
            f" · {duration(self.seconds)}"
        ]
        if found["demonstration"]:
            lines.insert(0, "Demonstration: the rule-based offline model answered, not a language model.")
        if found["executes"] is None and found["linking_questions"]:
            tables, columns = found["table_recall"], found["column_recall"]
            lines.append(
                f"Valid SQL {percent(found['valid'])} · linking recall: tables {percent(tables)}, columns"
                f" {percent(columns)}"
            )
        if found["unscorable"] and not self.batch:
            lines.append(f"Not scored, by the state of the gold: {_counts(found['unscorable'])}.")
        if self.errors:
            lines.append(f"Errors: {_counts(found['errors'])}.")
        if lost := found["with_fewer_candidates"]:
            lines.append(f"{count(lost, 'answer')} with fewer candidates: the endpoint failed the others.")
        for id in found["faults"]:
            last = self.records[id].message.strip().splitlines()[-1:]
            lines.append(f"Fault in {id}: {one_line(last[0] if last else '', 200)}")
        return lines


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def _lacks_candidates(record: Record) -> bool:
    lost = any(candidate.error == "model_unavailable" for candidate in record.candidates)
    return lost and record.status == "answered"


class TallyBoard(progress.Board):
    """Shows a tally while it grows: a bar on a terminal, elsewhere a line every ``LINE_SECONDS``."""

    def __init__(self, tally: Tally, console: Console, *, quiet: bool = False) -> None:
        super().__init__(console, quiet=quiet)
        self.tally, self._last_line = tally, 0.0

    def begin(self, earlier: Collection[Record]) -> None:
        """Begin to show: the questions are about to be asked."""
        self.tally.begin(earlier)
        if earlier and not self.quiet:
            self.console.print(Text(f"Going on: {count(len(earlier), 'question')} finished before."))
        if self.console.is_terminal and not self.quiet:
            self._show()

    def record(self, record: Record) -> None:
        """Show that a question has ended."""
        self.tally.add(record)
        if self._shown is not None:
            self._show()
        elif not self.quiet and self.tally.seconds - self._last_line >= LINE_SECONDS:
            self._last_line = self.tally.seconds
            self.console.print(Text(f"{self.tally.done}/{self.tally.asked} · {self.tally.line()}"))

    def _show(self) -> None:
        self.show_bar(self.tally.line(), self.tally.done, self.tally.asked, MofNCompleteColumn())
