"""The answer that scripts and notebooks get: it prints as text, as Markdown and as HTML."""

from __future__ import annotations

import io
from collections.abc import Iterator

from typing_extensions import override

from quorum.evals.reports.format import fenced, markdown, table
from quorum.graph.answer import Answer as _Answer
from quorum.text import (
    DEMONSTRATION,
    MAX_COLUMNS,
    bars_of,
    laid_out,
    readings_of,
    remarks_of,
    rows_note,
    shown_rows,
    spent,
    status_of,
    trust,
)


class Answer(_Answer):
    """A question's answer, as ``quorum.graph.answer.Answer``; ``str`` of it is a short text for people."""

    @classmethod
    def of(cls, made: _Answer) -> Answer:
        """Return an answer of the graph as one of these."""
        return cls.model_construct(**dict(made))

    @override
    def __str__(self) -> str:
        from rich.console import Console

        from quorum.render import show_answer

        out = Console(file=io.StringIO(), width=110, color_system=None, highlight=False)
        show_answer(self, out, brief=True)
        return str(out.file.getvalue()).rstrip()  # type: ignore[attr-defined]

    def to_markdown(self) -> str:
        """Return the answer as Markdown: what it says, its query, the first rows, how far to trust it.

        Nothing in it that comes from the database or a model is markup.
        """
        return "\n\n".join(filter(None, self._parts()))

    def _repr_html_(self) -> str:
        from quorum.evals.reports.templating import html_of

        return str(html_of([self.to_markdown()]))

    def _parts(self) -> Iterator[str]:
        yield DEMONSTRATION if self.demonstration else ""
        yield f"Understood as: {markdown(self.became, 1000)}" if self.became else ""
        if self.words:
            yield markdown(self.words, 2000)
            return
        yield f"**{markdown(status_of(self)[0])}**"
        for said in (self.error, self.hint, self.missing, self.summary):
            yield markdown(said, 1000)
        if self.sql:
            yield fenced(laid_out(self.sql, self.dialect))
        if self.columns:
            yield _table(self.columns, self.rows, self.types)
            yield rows_note(self)
            yield fenced("\n".join(bars_of(self)), "") if self.chart and bars_of(self) else ""
        if readings_of(self)[0] and self.reading:
            yield f"Read as: {markdown(self.reading)}"
        for reading in readings_of(self)[0]:
            yield f"If you meant: {markdown(reading.says)}"
            yield _table(reading.columns, reading.rows, reading.types)
        for head, texts, _ in remarks_of(self):
            yield "\n".join(f"- {head}: {markdown(text, 1000)}" for text in texts)
        if self.columns:
            yield f"Confidence: {trust(self)[0]}: {markdown(self.grounds, 300)}"
        if self.usage:
            yield f"Cost: {markdown(spent(self.usage))}"


def _table(columns: list[str], rows: list[list[object]], types: list[str]) -> str:
    shown, hidden = columns[:MAX_COLUMNS], len(columns) - MAX_COLUMNS
    head = [markdown(name, 40) for name in shown] + ([f"… {hidden} more"] if hidden > 0 else [])
    lines = shown_rows(shown, [row[:MAX_COLUMNS] for row in rows], types)
    more = ["…"] if hidden > 0 else []
    return table(" | ".join(head), [[*(markdown(text) for text in line), *more] for line in lines])
