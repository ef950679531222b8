"""``quorum demo``: three questions on the sample database, without a key."""

from __future__ import annotations

import shutil

import click

from quorum.commands.ask import ask_live, print_answer


@click.command()
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
def command(quiet: bool) -> None:
    """Answer three questions on the sample database with the offline model.

    The offline model is a set of rules, not a language model: it shows how Quorum works, step by
    step, without a key and without a network. Exits with 0 if all three were answered.
    """
    from quorum.tools.sample import DEMO_QUESTIONS

    flags = {"database": ["sample"], "models": ["offline"], "model_for": {}}
    failed, last = 0, ""
    for number, sample in enumerate(DEMO_QUESTIONS, 1):
        click.echo()
        click.secho(f"{number} of {len(DEMO_QUESTIONS)}  {sample.question}", bold=True)
        click.secho(f"        shows {sample.shows}", dim=True)
        click.echo()
        answer = ask_live(sample.question, flags, quiet=quiet)
        print_answer(answer)
        failed += answer.status != "answered"
        last = answer.run_id
    click.secho("─" * min(72, shutil.get_terminal_size().columns), dim=True)
    click.echo(f"Every step of the last run:  quorum trace show {last}")
    click.echo(f"As a page for the browser:   quorum trace show {last} --html answer.html")
    click.echo("Your own database:           quorum ask '…' --db sqlite:///shop.db --model openai:gpt-4.1")
    if failed:
        raise SystemExit(1)
