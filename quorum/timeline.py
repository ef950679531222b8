"""A run in the terminal, step by step."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from quorum.event_text import title_of
from quorum.render import STYLES, rows_table, show_answer, sql_text
from quorum.report import Detail, Entry, Report, Section
from quorum.text import count, dollars, printable, spent
from quorum.tools.results.readable import size_text

_INDENT = 8
_ROWS = 5
READ = {"read_bytes": "read", "estimated_bytes": "read, estimated"}
"""Columns of a ledger that are shown where there is anything to tell."""
_CHANGED = {"+": "green", "-": "red"}


def show_report(report: Report, out: Console, *, full: bool = False) -> None:
    """Print a run; ``full`` adds the whole prompts and replies."""
    out.print(Rule(Text(f"run {report.run_id}"), style="dim"))
    out.print(Text(printable(report.question), style="bold"))
    if report.asked:
        out.print(Text(f"asked as: {printable(report.asked)}"))
    out.print(Text(printable(" · ".join(filter(None, (report.started, *report.about)))), style="dim"))
    for section in report.sections:
        _show_section(section, out, full=full)
    out.print()
    for by, accounts in report.accounts.items():
        out.print(cost_table(by, accounts, report.usage))
    if report.answer:
        out.print()
        show_answer(report.answer, out)
    else:
        why = f"it failed: {printable(report.error)}" if report.error else "it was interrupted."
        told = f"An exploration. {report.explored}" if report.explored else f"This run has no answer: {why}"
        out.print(Text(told, style="yellow"))
        out.print(Text(f"So far: {spent(report.usage)}", style="dim"))
        out.print(Text(f"Go on with: {report.how_to_go_on}"))


def cost_table(by: str, accounts: dict[str, dict[str, Any]], usage: dict[str, Any]) -> Table:
    """What each agent, or each model, used, and all together."""
    table = Table(title=f"cost by {by}", title_justify="left", title_style="dim", border_style="dim")
    table.add_column(by)
    rows = [*accounts.items(), ("all", usage)]
    read = [key for key in ("read_bytes", "estimated_bytes") if any(used.get(key) for _, used in rows)]
    columns = [
        "calls",
        "tokens in",
        "cached",
        "out",
        "$",
        "queries",
        "rows",
        *(READ[key] for key in read),
        "seconds",
    ]
    for name in columns:
        table.add_column(name, justify="right")
    for name, used in rows:
        table.add_row(
            Text(title_of(name) if by == "agent" else printable(name)),
            f"{int(used.get('model_calls') or 0):,}",
            f"{int(used.get('input_tokens') or 0):,}",
            f"{int(used.get('cached_tokens') or 0):,}",
            f"{int(used.get('output_tokens') or 0):,}",
            dollars(used.get("usd", 0.0)),
            f"{int(used.get('queries') or 0):,}",
            f"{int(used.get('rows') or 0):,}",
            *(size_text(int(used.get(key) or 0)) for key in read),
            f"{float(used.get('model_seconds') or 0) + float(used.get('query_seconds') or 0):.2f}",
            end_section=name == rows[-2][0] if len(rows) > 1 else False,
        )
    return table


def _show_section(section: Section, out: Console, *, full: bool) -> None:
    outcome = section.outcome
    notes = [
        str(outcome.get("model") or ""),
        count(outcome["repairs"], "repair") if outcome.get("repairs") else "",
    ]
    title = " · ".join(printable(part) for part in (section.title, *notes) if part)
    out.print()
    out.print(Text(title, style="bold cyan"))
    for entry in section.entries:
        _show_entry(entry, out, full=full)


def _show_entry(entry: Entry, out: Console, *, full: bool) -> None:
    step = entry.step
    line = Table.grid(padding=(0, 1))
    line.add_column(width=_INDENT - 1, justify="right", style="dim")
    line.add_column(width=20, style="dim" if entry.is_low_level else "bold", no_wrap=True)
    line.add_column(overflow="fold")
    origin = (f"  {step.origin}" if full and step.origin else "", "dim")
    gist = Text.assemble((step.gist, STYLES[step.tone]), origin)
    line.add_row(Text(f"{step.t:.2f}"), Text(step.agent), gist)
    out.print(line)
    for detail in entry.details:
        if full or entry.is_telling(detail):
            _show_detail(detail, out, full=full)


def _show_detail(detail: Detail, out: Console, *, full: bool) -> None:
    if detail.kind == "table":
        rows = detail.rows if full else detail.rows[:_ROWS]
        out.print(Padding.indent(rows_table(detail.columns, rows, detail.types), _INDENT))
        return
    if full:
        out.print(Padding.indent(Text(detail.label, style="dim underline"), _INDENT))
    if detail.kind == "diff":
        lines = (
            Text(f"{sign} {printable(line)}\n", style=_CHANGED.get(sign, "")) for sign, line in detail.rows
        )
        out.print(Padding.indent(Text.assemble(*lines, end=""), _INDENT))
        return
    text = sql_text(detail.text) if detail.kind == "sql" else Text(printable(detail.text))
    out.print(Padding.indent(text, _INDENT))
