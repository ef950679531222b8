"""Live progress: one line per step on standard error, as it happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from quorum.event_text import Event, Step, step_of
from quorum.render import STYLES
from quorum.text import count, dollars, listed


class Progress:
    """Hears a run's events and prints them; on a terminal a last line counts calls and tokens.

    Attributes:
        run: The run's id, once it has begun.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self.run = ""
        self.calls = self.tokens = self.queries = 0
        self.usd: float | None = 0.0
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self._status = self.console.status("opening", spinner="dots")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """No spinner while something else is on the screen."""
        if self._status is not None:
            self._status.stop()
        yield
        if self._status is not None:
            self._status.start()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if event["kind"] == "begun":
            self.run = str(event["run"])
        self._count(event.get("usage"))
        if self.quiet:
            return
        step = step_of(event, width=max(40, self.console.width - 45))
        if step.live:
            self.console.print(line_of(step), soft_wrap=True)
        if self._status is not None:
            self._status.update(Text(self._sums(), style="dim"))

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        self.calls += int(usage.get("model_calls") or 0)
        self.queries += int(usage.get("queries") or 0)
        self.tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
        usd = usage.get("usd", 0.0)
        self.usd = None if usd is None or self.usd is None else self.usd + float(usd)

    def _sums(self) -> str:
        calls, queries = count(self.calls, "model call"), count(self.queries, "query", "queries")
        return f"{calls} · {self.tokens:,} tokens · {dollars(self.usd)} · {queries}"


def line_of(step: Step) -> Text:
    """A step on one line: seconds, candidate if it is of one, agent, gist."""
    return Text.assemble(
        (f"{step.t:6.1f}  ", "dim"),
        (f"{listed([step.candidate]):<13}", "cyan"),
        (f"{step.agent:<20} ", "bold"),
        (step.gist, STYLES[step.tone]),
    )
