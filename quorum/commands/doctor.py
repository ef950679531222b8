"""``quorum doctor``: what is configured, from where, and what is missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.settings import Settings
from quorum.text import printable

if TYPE_CHECKING:
    from quorum.checks import Check

PROBLEM = 2


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--settings", "every", is_flag=True, help="list the settings that have their default, too")
@setting_flags()
def command(as_json: bool, every: bool, **flags: Any) -> None:
    """Say whether a question could be asked, what is missing, and where each setting comes from.

    A flag is looked at in place of what is configured. Settings that have their default are counted only.

    Secrets are never shown. An endpoint named by base_url is asked for its list of models, which
    costs nothing. Exits with 0 if a question could be asked as things stand, else with 2.
    """
    from quorum.checks import all_checks

    settings = Settings(**flags)
    shown, sources = settings.shown(), settings.provenance()
    checks = list(all_checks(settings))
    healthy = all(check.ok is not False for check in checks)
    if as_json:
        found = {name: {"value": value, "source": sources[name]} for name, value in shown.items()}
        report = {"ok": healthy, "settings": found, "checks": [asdict(check) for check in checks]}
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _show_checks(checks)
        _show_settings(shown, sources, every=every)
    if not healthy:
        raise SystemExit(PROBLEM)


def _show_checks(checks: list[Check]) -> None:
    click.secho("Checks", bold=True)
    marks = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "yellow")}
    for check in checks:
        mark, colour = marks[check.ok]
        click.echo(f"  {click.style(mark, fg=colour)} {check.name:<20} {printable(check.text)}")
        if check.hint:
            click.secho(f"    {'':<20} {printable(check.hint)}", dim=True)


def _show_settings(shown: dict[str, str], sources: dict[str, str], *, every: bool) -> None:
    listed = [name for name in shown if every or sources[name] != "default"]
    click.echo()
    click.secho("Settings", bold=True)
    for name in listed:
        line = f"  {name:<20} {printable(shown[name]) or '–':<32} {sources[name]}"
        click.secho(line, dim=sources[name] == "default")
    if left := len(shown) - len(listed):
        others = "other setting has its" if left == 1 else "other settings have their"
        click.secho(f"  {left} {others} default (--settings lists all)", dim=True)
