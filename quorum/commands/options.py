"""Flags made of what is declared of each option (``quorum.graph.options``), under headings in ``--help``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar, get_origin

import click

from quorum.settings import Settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

HEADINGS = {
    "database": "Data",
    "models": "Models",
    "recipe": "Agents and votes",
    "max_calls": "Limits",
    "schema_tokens": "Prompts and places",
}
"""Headings, each by the first option below it."""

_METAVARS = {"seconds": "TIME", "bytes": "SIZE"}


class Flag(click.Option):
    """The flag of an option. ``Settings`` reads its value, as it reads that of a variable."""


class Command(click.Command):
    """A command whose help lists its own flags first, then those of the options under their headings."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give a flag that needs no value the one it stands for: ``--clarify "How many?"``."""
        declared = Settings.declared()
        flags = {each.opts[0]: declared[str(each.name)] for each in self.params if isinstance(each, Flag)}
        bare = {name: option for name, option in flags.items() if option.bare}
        spelt = [
            f"{arg}={bare[arg].bare}" if arg in bare and after not in bare[arg].choices else arg
            for arg, after in zip(args, [*args[1:], ""], strict=False)
        ]
        return super().parse_args(ctx, spelt)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        of, heading = {}, "Options"
        for name in Settings.model_fields:
            of[name] = heading = HEADINGS.get(name, heading)
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                title = of[str(parameter.name)] if isinstance(parameter, Flag) else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def setting_flags(*names: str, without: Collection[str] = ()) -> Callable[[Decorated], Decorated]:
    """Adds flags to a command: of the options named, else of all but those ``without`` and the key."""
    chosen = names or [name for name in Settings.model_fields if name not in ("api_key", *without)]

    def add(command: Decorated) -> Decorated:
        for name in reversed(chosen):
            command = _flag(name)(command)
        return command

    return add


def _flag(name: str) -> Callable[[Decorated], Decorated]:
    option, field = Settings.declared()[name], Settings.model_fields[name]
    spelt, usual = name.replace("_", "-"), option.shown(field.default)
    help_ = option.explanation.replace("`", "") + (f"  [{usual}]" if usual else "")
    if field.annotation is bool:
        return click.option(f"--{spelt}/--no-{spelt}", name, cls=Flag, default=None, help=help_)
    several = get_origin(field.annotation) in (list, dict)
    plural = several and spelt.startswith(option.flag.removeprefix("--"))  # a flag names one at a time
    spellings = [option.flag or f"--{spelt}", *([f"--{spelt}"] if option.flag and not plural else [])]
    metavar = option.metavar or _METAVARS.get(option.unit, "NAME" if option.choices else "N")
    return click.option(*spellings, name, cls=Flag, multiple=several, metavar=metavar, help=help_)
