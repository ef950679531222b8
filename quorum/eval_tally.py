"""An evaluation so far, in figures: for the progress bar, and for the summary at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from quorum.evals.records import Linking, Record
from quorum.evals.reports.format import percent
from quorum.evals.reports.scores import right, unscorable
from quorum.evals.reports.statistics import mean_of, share_of
from quorum.evals.running.verdicts import FAULT
from quorum.text import count, dollars, duration, one_line

_SUMS = ("model_calls", "input_tokens", "output_tokens", "cached_tokens", "queries")


class Tally:
    """What is known of an evaluation so far.

    Args:
        asked: Questions asked for.

    Attributes:
        records: Of the questions that ended, by id; a later one takes an earlier one's place.
        seconds: Wall clock of this process since ``begin``.
    """

    def __init__(self, asked: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.asked = asked
        self.records: dict[str, Record] = {}
        self.earlier = 0
        self.right = 0
        self.errors: Counter[str] = Counter()
        self.usd: float | None = 0.0
        self.sums: Counter[str] = Counter()
        self._clock = clock
        self._start = clock()

    def begin(self, earlier: Collection[Record]) -> None:
        """The clock starts; what earlier processes finished counts, but tells nothing of this one's speed."""
        for record in earlier:
            self.add(record)
        self.earlier = len(self.records)
        self._start = self._clock()

    def add(self, record: Record) -> None:
        """A question has ended."""
        self.records[record.id] = record
        self.right += right(record)
        if record.error:
            self.errors[record.error] += 1
        self.sums.update({name: int(record.usage.get(name) or 0) for name in _SUMS})
        usd = record.usage.get("usd", 0.0)
        self.usd = None if usd is None or self.usd is None else self.usd + float(usd)

    @property
    def done(self) -> int:
        """Questions that ended, well or not."""
        return len(self.records)

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    @property
    def left_seconds(self) -> float | None:
        """Until all have ended at the pace of this process; None until it has one."""
        new = self.done - self.earlier
        return self.seconds / new * (self.asked - self.done) if new else None

    def line(self) -> str:
        """How it stands: ETA, running EX, cost, errors."""
        left = self.left_seconds
        eta = f"ETA {duration(left)}" if left is not None else "ETA –"
        measurable = any(record.match is not None for record in self.records.values())
        ex = percent(self.right / self.done if measurable else None)
        return f"{eta} · EX {ex} · {dollars(self.usd)} · {count(self.errors.total(), 'error')}"

    def summary(self) -> dict[str, Any]:
        """Figures over the questions that ended, ready for JSON; shares are 0 to 1, None if not known."""
        records = list(self.records.values())
        measurable = any(record.match is not None for record in records)
        ex = share_of(right(record) for record in records) if measurable else None
        written = [record for record in records if record.sql]
        lost = [each for each in records if each.status == "answered" and _lacks_candidates(each)]
        linked = [record.linking for record in records if record.linking]
        return {
            "asked": self.asked,
            "ended": self.done,
            "finished": sum(record.finished for record in records),
            "answered": sum(record.status == "answered" for record in records),
            "ex": ex.share if ex else None,
            "ex_se": ex.se if ex else None,
            "unscorable": dict(Counter(record.gold for record in records if unscorable(record))),
            "executes": share_of(r.executes for r in written if r.executes is not None).share,
            "valid": share_of(record.valid for record in written if record.valid is not None).share,
            **_linking(linked),
            **{name: self.sums[name] for name in _SUMS},
            "usd": self.usd,
            "seconds": round(self.seconds, 2),
            "memory": max((record.memory for record in records), default=0),
            "errors": dict(self.errors.most_common()),
            "faults": [record.id for record in records if record.error == FAULT],
            "with_fewer_candidates": len(lost),
            "demonstration": any(record.demonstration for record in records),
        }

    def closing(self) -> list[str]:
        """The summary in lines for people, the most important first."""
        found = self.summary()
        ex, se = found["ex"], found["ex_se"]
        score = (
            percent(ex) + (f" ± {100 * se:.1f}" if se is not None else "") if ex is not None else "not known"
        )
        tokens = found["input_tokens"] + found["output_tokens"]
        lines = [
            f"{self.done:,} of {count(self.asked, 'question')} · EX {score}"
            f" · executes {percent(found['executes'])}"
            f" · {count(found['model_calls'], 'model call')} · {tokens:,} tokens · {dollars(self.usd)}"
            f" · {duration(self.seconds)}"
        ]
        if found["executes"] is None and found["linking_questions"]:
            tables, columns = found["table_recall"], found["column_recall"]
            lines.append(
                f"Valid SQL {percent(found['valid'])} · linking recall: tables {percent(tables)}, columns"
                f" {percent(columns)}"
            )
        if found["unscorable"]:
            lines.append(f"Not scored, by the state of the gold: {_counts(found['unscorable'])}.")
        if self.errors:
            lines.append(f"Errors: {_counts(found['errors'])}.")
        if lost := found["with_fewer_candidates"]:
            lines.append(f"{count(lost, 'answer')} with fewer candidates: the endpoint failed the others.")
        return lines + [_fault(self.records[id]) for id in found["faults"]]


def _linking(linked: list[Linking]) -> dict[str, Any]:
    names = ("table_recall", "table_precision", "column_recall", "column_precision")
    means = {name: mean_of(getattr(each, name) for each in linked).mean for name in names}
    return {"linking_questions": len(linked), **means}


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def _lacks_candidates(record: Record) -> bool:
    return any(candidate.error == "model_unavailable" for candidate in record.candidates)


def _fault(record: Record) -> str:
    """A fault of ours: the question and the last line of the traceback."""
    last = record.message.strip().splitlines()[-1:]
    return f"Fault in {record.id}: {one_line(last[0] if last else '', 200)}"
