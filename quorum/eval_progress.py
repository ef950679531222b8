"""An evaluation under way: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from quorum.eval_tally import Tally
from quorum.evals.records import Record
from quorum.text import count, one_line

LINE_SECONDS = 10.0
"""Between two lines where there is no terminal."""


class Board:
    """Shows a tally while it grows: a bar on a terminal, elsewhere a line every ``LINE_SECONDS``."""

    def __init__(self, tally: Tally, console: Console, *, quiet: bool = False) -> None:
        self.tally, self.console, self.quiet = tally, console, quiet
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._told = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def begin(self, earlier: Collection[Record]) -> None:
        """The questions are about to be asked."""
        self.tally.begin(earlier)
        if self.quiet:
            return
        if earlier:
            self.console.print(Text(f"Going on: {count(len(earlier), 'question')} finished before."))
        if self.console.is_terminal:
            self._bar = Progress(
                BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[line]}"), console=self.console
            )
            self._task = self._bar.add_task("", total=self.tally.asked, **self._now())
            self._bar.start()

    def record(self, record: Record) -> None:
        """A question has ended."""
        self.tally.add(record)
        if self._bar is not None:
            self._bar.update(self._task, **self._now())
        elif not self.quiet and self.tally.seconds - self._told >= LINE_SECONDS:
            self._told = self.tally.seconds
            self.console.print(Text(f"{self.tally.done}/{self.tally.asked} · {self.tally.line()}"))

    def stop(self) -> None:
        """Take the bar away; safe to call twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _now(self) -> dict[str, Any]:
        return {"completed": self.tally.done, "line": self.tally.line()}


@contextmanager
def indexing(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for the column texts of one database after the other, where there is a terminal."""
    if not console.is_terminal:
        yield lambda *_: None
        return
    with Progress(
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), console=console
    ) as bar:
        task = bar.add_task("", total=None)

        def told(database: str, done: int, total: int) -> None:
            name = escape(one_line(database, 60))
            bar.update(task, description=f"columns of {name}", completed=done, total=total)

        yield told
