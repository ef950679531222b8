"""An answer for people, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from quorum.pipes import discard
from quorum.text import (
    EXAMPLES,
    SHOWN_ROWS,
    Tone,
    agreement,
    cell,
    failures,
    grounds,
    laid_out,
    notices,
    printable,
    readings_of,
    rows_note,
    shown_rows,
    spent,
    status_of,
    trust,
)

MAX_COLUMNS = 14  # wider tables are unreadable in a terminal

OnDone = Callable[[int, int], None]
"""Called with the number of questions done and of all questions."""

STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "warn": "yellow", "faint": "dim"}


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


def show_answer(answer: dict[str, Any], out: Console) -> None:
    """Print an answer (``quorum.graph.answer.Answer`` as a dict)."""
    title, tone = status_of(answer)
    if answer.get("demonstration"):
        notice = "Demonstration: the rule-based offline model answered, not a language model."
        out.print(Text(notice, style="bold magenta"))
    out.print(Text(printable(title), style=f"bold {STYLES[tone]}"))
    for said in filter(None, (answer.get("missing"), answer.get("summary"))):
        out.print(Text(printable(str(said))))
    if answer.get("sql"):
        sql = sql_text(laid_out(answer["sql"], answer.get("dialect", "")))
        out.print(
            Panel(sql, border_style="dim", expand=False) if out.is_terminal else sql,
            soft_wrap=not out.is_terminal,
        )
    if answer.get("columns"):
        out.print(rows_table(answer["columns"], answer.get("rows") or [], answer.get("types") or []))
        whole = len(answer.get("rows") or []) >= int(answer.get("row_count") or 0)
        more = "" if whole else "; --csv prints all that were kept, --out writes them to a file"
        out.print(Text(rows_note(answer) + more, style="dim"))
    elif answer.get("status") != "unanswerable":
        failed = failures(answer)
        out.print(Text("No candidate has a result:" if failed else "No candidate was begun."))
        for names, error in failed:
            out.print(Text.assemble((f"  {names}: ", "cyan"), printable(error)))
    readings, unseen = readings_of(answer)
    for reading in readings:
        _show_reading(reading, out)
    for line in [
        *_texts("It assumes:", answer.get("assumptions")),
        *_texts("The data shows:", answer.get("doubts")),
        *_texts("The question could also mean:", unseen),
        *_texts("You chose:", list(filter(None, [answer.get("meant")]))),
        *_texts("Kept for later questions:", list(filter(None, [answer.get("convention")]))),
        *_texts(EXAMPLES, answer.get("verified")),
        *_texts("Documents shown to the model:", answer.get("sources")),
        *_texts("Read in each database:", answer.get("parts"), folds=False),
        *_texts("The candidates disagree:", answer.get("disagreement"), STYLES["warn"], folds=False),
    ]:
        out.print(line)
    for warning in notices(answer):
        out.print(Text(f"Warning: {printable(warning)}", style=STYLES["warn"]))
    out.print(_facts(answer))


def _show_reading(reading: dict[str, Any], out: Console) -> None:
    """Print another reading that was run, with its first rows; a single value stands on the same line."""
    head, rows = f"If you meant: {reading.get('says')}", reading.get("rows") or []
    if [len(row) for row in rows] == [1]:
        ((value,),) = shown_rows(reading["columns"], rows, reading.get("types") or [])
        out.print(Text.assemble(printable(f"{head}  "), (value, "bold")))
        return
    out.print(Text(printable(head)))
    shown = rows_table(reading.get("columns") or [], rows, reading.get("types") or [])
    out.print(Padding(shown, (0, 0, 0, 2)))
    if (hidden := int(reading.get("row_count") or 0) - len(rows)) > 0:
        out.print(Text(f"  {hidden:,} more rows; its query is in the trace", style="dim"))


def sql_text(sql: str) -> Text:
    """SQL, coloured where there are colours."""
    painter = Syntax("", "sql", theme="ansi_dark", background_color="default")
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


def _texts(head: str, texts: list[str] | None, style: str = "", *, folds: bool = True) -> list[Text]:
    """Sentences under a heading; with ``folds`` a single one stands beside it."""
    said = [printable(str(text)) for text in texts or []]
    if len(said) == 1 and folds:
        return [Text(f"{head} {said[0]}", style=style)]
    return [Text(head, style=style), *(Text(f"  {text}") for text in said)] if said else []


def _facts(answer: dict[str, Any]) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    vote = answer.get("vote") or {}
    if agreed := agreement(answer):
        facts.add_row("agreement", Text(agreed))
    for note in (vote.get("notes") or []) if vote.get("clusters") else []:
        facts.add_row("", Text(printable(str(note))))
    if answer.get("columns") or answer.get("confidence"):
        word, tone = trust(answer)
        why = f": {printable(grounds(answer))}" if answer.get("columns") else ""
        facts.add_row("confidence", Text.assemble((word, STYLES[tone]), why))
    if answer.get("usage"):
        facts.add_row("cost", Text(spent(answer["usage"])))
    if answer.get("run_id"):
        facts.add_row("trace", Text(f"{answer.get('trace', '')}  (quorum trace show {answer['run_id']})"))
    if answer.get("run_id") and answer.get("columns") and vote.get("settled") != "verified":
        wrong = f"quorum correct {answer['run_id']} --sql …"
        facts.add_row("right?", Text(f"quorum keep {answer['run_id']}  (wrong: {wrong})"))
    return facts
