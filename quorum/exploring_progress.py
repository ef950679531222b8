"""An exploration under way: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from quorum.text import count, dollars

if TYPE_CHECKING:
    from quorum.graph.nodes.tree_search import Search


class SearchBoard:
    """Shows coverage, success, triplets and spend while a search goes on.

    Attributes:
        begun: The search has begun.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console, self.quiet, self.begun = console, quiet, False
        self.calls = self.tokens = 0
        self.usd = 0.0
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def event(self, event: dict[str, Any]) -> None:
        """Count what a call has used."""
        if event["kind"] == "model_call":
            usage = event.get("usage") or {}
            self.calls += 1
            self.tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
            self.usd += float(usage.get("usd") or 0.0)

    def show(self, search: Search) -> None:
        """Show where the search stands, after each round."""
        first, self.begun = not self.begun, True
        if self.quiet:
            return
        line = self._line(search)
        if not self.console.is_terminal:
            self.console.print(Text(line))
            return
        if first:
            self._bar = Progress(BarColumn(), TextColumn("{task.fields[line]}"), console=self.console)
            self._task = self._bar.add_task("", total=search.coverage, line=line)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=min(search.tree.coverage, search.coverage), line=line)

    def stop(self) -> None:
        """Take the bar away; safe to call twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _line(self, search: Search) -> str:
        triplets, tried = len(search.store.triplets), search.tried
        success = f", {triplets / tried:.0%} worked" if tried else ""
        spent = f", {dollars(self.usd)}" if self.usd else ""
        return (
            f"{search.tree.coverage:.0%} covered, {count(triplets, 'triplet')} of {tried:,} tried{success}, "
            f"{count(self.calls, 'call')}, {self.tokens:,} tokens{spent}"
        )
