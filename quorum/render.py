"""Answers and runs for people, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from quorum.event_text import link_to, title_of
from quorum.shell import discard
from quorum.text import (
    DEMONSTRATION,
    MAX_COLUMNS,
    SHOWN_ROWS,
    Tone,
    agreement,
    bars_of,
    cell,
    dollars,
    failures,
    is_verified,
    laid_out,
    printable,
    readings_of,
    remarks_of,
    rows_note,
    shown_rows,
    spent,
    status_of,
    trust,
)
from quorum.tools.results.readable import size_text

if TYPE_CHECKING:
    from quorum.graph.answer import Answer, AnswerReading
    from quorum.report import Detail, Entry, Report

OnDone = Callable[[int, int], None]
"""Called with the number of questions done and of all questions."""

STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "warn": "yellow", "faint": "dim"}

READ = {"read_bytes": "read", "estimated_bytes": "read, estimated"}
"""Columns of a ledger that are shown only where there is something in them."""

COUNTS = ("model_calls", "input_tokens", "cached_tokens", "output_tokens")
INDENT = 8  # of what is below a step
TRACE_ROWS = 5
CHANGED = {"+": "green", "-": "red"}


class PatientConsole(Console):
    """A console that goes quiet when its reader leaves (``| head``), where rich would end with 1."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


def console(*, stderr: bool = False) -> Console:
    """A console that keeps long lines whole where nobody looks at a screen."""
    made = PatientConsole(stderr=stderr, highlight=False)
    return made if made.is_terminal else PatientConsole(stderr=stderr, highlight=False, width=160)


@contextmanager
def counting(message: str = "reading") -> Iterator[OnDone]:
    """Show on standard error how far it is, where that is a terminal.

    Args:
        message: Shown until the first is done.
    """
    waiting = console(stderr=True)
    if not waiting.is_terminal:
        yield lambda *_: None
        return
    with waiting.status(message) as status:
        yield lambda done, total: status.update(f"question {done} of {total}")


def show_answer(answer: Answer, out: Console, *, brief: bool = False) -> None:
    """Print an answer; ``brief`` leaves out the commands that may follow it."""
    title, tone = status_of(answer)
    if answer.demonstration:
        out.print(Text(DEMONSTRATION, style="bold magenta"))
    if answer.became:
        out.print(Text(f"Understood as: {printable(answer.became)}", style="cyan"))
    if answer.words:
        out.print(Text(printable(answer.words)))
        return
    out.print(Text(printable(title), style=f"bold {STYLES[tone]}"))
    for said in filter(None, (answer.error, answer.hint, answer.missing, answer.summary)):
        out.print(Text(printable(said)))
    if answer.sql and not answer.of_run:
        sql = sql_text(laid_out(answer.sql, answer.dialect))
        out.print(
            Panel(sql, border_style="dim", expand=False) if out.is_terminal else sql,
            soft_wrap=not out.is_terminal,
        )
    if answer.columns:
        out.print(rows_table(answer.columns, answer.rows, answer.types))
        whole = len(answer.rows) >= answer.row_count
        more = "" if whole or brief else "; --csv prints all that were kept, --out writes them to a file"
        out.print(Text(rows_note(answer) + more, style="dim"))
        if answer.chart:
            out.print(Text("\n".join(bars_of(answer) or ["These rows have no numbers to draw."])))
    elif answer.status not in ("unanswerable", "failed"):
        failed = failures(answer)
        out.print(Text("No candidate has a result:" if failed else "No candidate was begun."))
        for names, error in failed:
            out.print(Text.assemble((f"  {names}: ", "cyan"), printable(error)))
    readings, _ = readings_of(answer)
    if readings and answer.reading:
        out.print(Text(f"Read as: {printable(answer.reading)}"))
    for reading in readings:
        _show_reading(reading, out)
    for head, texts, tone in remarks_of(answer):
        if len(texts) == 1 or head == "Warning":
            lines = [f"{head}: {printable(text)}" for text in texts]
        else:
            lines = [f"{head}:", *(f"  {printable(text)}" for text in texts)]
        out.print(Text("\n".join(lines), style=STYLES[tone]))
    out.print(_facts(answer, brief=brief))


def _show_reading(reading: AnswerReading, out: Console) -> None:
    """Print another reading that was run, with its first rows; a single value goes on the same line."""
    head, rows = f"If you meant: {reading.says}", reading.rows
    if [len(row) for row in rows] == [1]:
        ((value,),) = shown_rows(reading.columns, rows, reading.types)
        out.print(Text.assemble(printable(f"{head}  "), (value, "bold")))
        return
    out.print(Text(printable(head)))
    out.print(Padding(rows_table(reading.columns, rows, reading.types), (0, 0, 0, 2)))
    if (hidden := reading.row_count - len(rows)) > 0:
        out.print(Text(f"  {hidden:,} more rows; its query is in the trace", style="dim"))


def _facts(answer: Answer, *, brief: bool) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    vote = answer.vote
    if agreed := agreement(answer):
        facts.add_row("agreement", Text(agreed))
    for note in vote.notes if vote and vote.clusters else []:
        facts.add_row("", Text(printable(note)))
    if answer.columns or answer.confidence:
        word, tone = trust(answer)
        why = f": {printable(answer.grounds)}" if answer.grounds else ""
        facts.add_row("confidence", Text.assemble((word, STYLES[tone]), why))
    if answer.usage:
        facts.add_row("cost", Text(spent(answer.usage)))
    if (run := answer.run_id) and not brief:
        facts.add_row("trace", Text(f"{answer.trace}  (quorum trace show {run})"))
    if run and not brief and answer.columns and not is_verified(answer):
        facts.add_row("right?", Text(f"quorum keep {run}  (wrong: quorum correct {run} --sql …)"))
    return facts


def sql_text(sql: str) -> Text:
    """SQL, coloured where there are colours."""
    painter = Syntax("", "sql", theme="ansi_dark", background_color="default", word_wrap=True)
    text = painter.highlight(printable(sql))
    text.rstrip()
    return text


def rows_table(columns: list[str], rows: list[list[Any]], types: Sequence[str] = ()) -> Table:
    """The first rows as a table; columns beyond ``MAX_COLUMNS`` are counted, not shown.

    Args:
        types: Of the columns, as ``Answer.types``; empty where they are not known.
    """
    table = Table(border_style="dim", header_style="bold")
    shown = columns[:MAX_COLUMNS]
    for index, name in enumerate(shown):
        numeric = all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        table.add_column(Text(cell(name, 40)), justify="right" if numeric and rows else "left")
    hidden = len(columns) - len(shown)
    if hidden:
        table.add_column(Text(f"… {hidden} more", style="dim"))
    first = [row[:MAX_COLUMNS] for row in rows[:SHOWN_ROWS]]
    for row, texts in zip(first, shown_rows(shown, first, types), strict=True):
        nulls = ["dim italic" if value is None else "" for value in row]
        table.add_row(*map(Text, texts, nulls), *([Text("…", style="dim")] if hidden else []))
    return table


def plain_table(head: str, rows: Iterable[Sequence[str]], title: str = "") -> Table:
    """Return a table of figures without a frame.

    Args:
        head: The columns' names with `` | `` between them; a column of figures has ``>`` before its name.
    """
    table = Table(
        title=title or None, title_justify="left", title_style="", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for name in head.split(" | "):
        figures = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if figures else "left", no_wrap=figures)
    for row in rows:
        table.add_row(*row)
    return table


def show_report(report: Report, out: Console, *, full: bool = False) -> None:
    """Print a run; ``full`` adds the whole prompts and replies."""
    out.print(Rule(Text(f"run {report.run_id}"), style="dim"))
    out.print(Text(printable(report.question), style="bold"))
    if report.asked:
        out.print(Text(f"asked as: {printable(report.asked)}"))
    out.print(Text(printable(" · ".join(filter(None, (report.started, *report.about)))), style="dim"))
    for section in report.sections:
        out.print()
        out.print(Text(" · ".join(map(printable, section.heading)), style="bold cyan"))
        for entry in section.entries:
            _show_entry(entry, out, full=full)
    out.print()
    for by, accounts in report.accounts.items():
        out.print(cost_table(by, accounts, report.usage))
    if report.answer:
        out.print()
        show_answer(report.answer, out)
    else:
        why = f"it failed: {printable(report.error)}" if report.error else "it was interrupted."
        said = f"An exploration. {far}" if (far := report.exploration) else f"This run has no answer: {why}"
        out.print(Text(said, style="yellow"))
        out.print(Text(f"So far: {spent(report.usage)}", style="dim"))
        out.print(Text(f"Go on with: {report.how_to_go_on}"))


def cost_table(by: str, accounts: dict[str, dict[str, Any]], usage: dict[str, Any]) -> Table:
    """Return what each agent, or each model, used, and all together."""
    table = Table(title=f"cost by {by}", title_justify="left", title_style="dim", border_style="dim")
    table.add_column(by)
    rows = [*accounts.items(), ("all", usage)]
    read = {key: title for key, title in READ.items() if any(used.get(key) for _, used in rows)}
    for name in ("calls", "tokens in", "cached", "out", "$", "queries", "rows", *read.values(), "seconds"):
        table.add_column(name, justify="right")
    for name, used in rows:
        table.add_row(
            Text(title_of(name) if by == "agent" else printable(name)),
            *(f"{int(used.get(key) or 0):,}" for key in COUNTS),
            dollars(used.get("usd", 0.0)),
            *(f"{int(used.get(key) or 0):,}" for key in ("queries", "rows")),
            *(size_text(int(used.get(key) or 0)) for key in read),
            f"{float(used.get('model_seconds') or 0) + float(used.get('query_seconds') or 0):.2f}",
            end_section=name == rows[-2][0] if len(rows) > 1 else False,
        )
    return table


def _show_entry(entry: Entry, out: Console, *, full: bool) -> None:
    step = entry.step
    line = Table.grid(padding=(0, 1))
    line.add_column(width=INDENT - 1, justify="right", style="dim")
    line.add_column(width=20, style="dim" if entry.is_low_level else "bold", no_wrap=True)
    line.add_column(overflow="fold")
    gist = Text(step.gist, STYLES[step.tone])
    if places := step.origin if full else step.code:
        links = (f"dim link {link}" if (link := link_to(place)) else "dim" for place in places)
        gist.append("  ").append(Text(" · ", "dim").join(map(Text, places, links)))
    line.add_row(Text(f"{step.t:.2f}"), Text(step.agent), gist)
    out.print(line)
    for detail in entry.details:
        if full or entry.is_telling(detail):
            _show_detail(detail, out, full=full)


def _show_detail(detail: Detail, out: Console, *, full: bool) -> None:
    if detail.kind == "table":
        rows = detail.rows if full else detail.rows[:TRACE_ROWS]
        out.print(Padding.indent(rows_table(detail.columns, rows, detail.types), INDENT))
        return
    if full:
        out.print(Padding.indent(Text(detail.label, style="dim underline"), INDENT))
    if detail.kind == "diff":
        lines = (
            Text(f"{sign} {printable(line)}\n", style=CHANGED.get(sign, "")) for sign, line in detail.rows
        )
        out.print(Padding.indent(Text.assemble(*lines, end=""), INDENT))
        return
    text = sql_text(detail.text) if detail.kind == "sql" else Text(printable(detail.text))
    out.print(Padding.indent(text, INDENT))
