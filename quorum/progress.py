"""Live progress on standard error: a line per step of a question, a bar for what takes longer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

from quorum.event_text import Event, EventText, step_of
from quorum.render import STYLES
from quorum.text import count, dollars, listed

if TYPE_CHECKING:
    from quorum.graph.nodes.tree_search import Search


class Board:
    """Shows how far something is, on a terminal by a spinner or a bar; a context manager."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console, self.quiet = console, quiet
        self._shown: Status | Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the spinner or the bar away; safe to call twice."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def show_bar(self, line: str, done: float, total: float, *columns: ProgressColumn) -> None:
        """Show a bar with a line behind it; ``columns`` stand between them."""
        if not isinstance(self._shown, Bar):
            self._shown = Bar(BarColumn(), *columns, TextColumn("{task.fields[line]}"), console=self.console)
            self._shown.add_task("", total=total, line=line)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=done, line=line)


class _Listener(Board):
    """Hears a run's events and sums what its calls and queries used.

    Attributes:
        run: The run's id, once it has begun.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        super().__init__(console, quiet=quiet)
        self.run = ""
        self.calls = self.tokens = self.queries = 0
        self.usd: float | None = 0.0

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if event["kind"] == "begun":
            self.run = str(event["run"])
        if not isinstance(usage := event.get("usage"), dict):
            return
        self.calls += int(usage.get("model_calls") or 0)
        self.queries += int(usage.get("queries") or 0)
        self.tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
        usd = usage.get("usd", 0.0)
        self.usd = None if usd is None or self.usd is None else self.usd + float(usd)


class Progress(_Listener):
    """Prints the steps of a question; on a terminal a last line counts calls and tokens."""

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self._shown = self.console.status("opening", spinner="dots")
            self._shown.start()
        return self

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Show no spinner while something else is on the screen."""
        if self._shown is not None:
            self._shown.stop()
        yield
        if self._shown is not None:
            self._shown.start()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        super().__call__(event)
        if self.quiet:
            return
        step = step_of(event, width=max(40, self.console.width - 45))
        if step.live:
            self.console.print(line_of(step), soft_wrap=True)
        if isinstance(self._shown, Status):
            calls, queries = count(self.calls, "model call"), count(self.queries, "query", "queries")
            sums = f"{calls} · {self.tokens:,} tokens · {dollars(self.usd)} · {queries}"
            self._shown.update(Text(sums, style="dim"))


def line_of(step: EventText) -> Text:
    """Return a step on one line: seconds, candidate if it is of one, agent, gist."""
    return Text.assemble(
        (f"{step.t:6.1f}  ", "dim"),
        (f"{listed([step.candidate]):<13}", "cyan"),
        (f"{step.agent:<20} ", "bold"),
        (step.gist, STYLES[step.tone]),
    )


class SearchBoard(_Listener):
    """Shows coverage, success, triplets and spend while an exploration goes on: a bar, elsewhere lines."""

    def show(self, search: Search) -> None:
        """Show how far the search is, after each round."""
        if self.quiet:
            return
        triplets, tried = len(search.store.triplets), search.tried
        line = (
            f"{search.tree.coverage:.0%} covered, {count(triplets, 'triplet')} of {tried:,} tried"
            + (f", {triplets / tried:.0%} worked" if tried else "")
            + f", {count(self.calls, 'call')}, {self.tokens:,} tokens"
            + (f", {dollars(self.usd)}" if self.usd else "")
        )
        if self.console.is_terminal:
            self.show_bar(line, min(search.tree.coverage, search.coverage), search.coverage)
        else:
            self.console.print(Text(line))
