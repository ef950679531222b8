"""``quorum recipes``: which agents run, after which paper, with which switches."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from quorum.graph.recipes.recipe import Recipe

USUAL = ("votes", "strategy", "stopping", "temperature")


@click.command(short_help="List the recipes, or one with its switches.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the recipes, or all about one: its switches with the paper's values.

    Recipes of other packages follow, each with its package.

    Choose one with `quorum ask --recipe NAME`, its switches with `--switch NAME=VALUE`.
    """
    from quorum.graph.recipes import RECIPES, find_recipe
    from quorum.tools import plugins

    if name is not None:
        found = find_recipe(name)
        _head(found)
        _details(found)
        return
    for recipe in RECIPES.values():
        _head(recipe)
    for point in plugins.installed(plugins.RECIPES):  # none is imported
        click.secho(point.name, bold=True)
        click.echo(f"  from    {plugins.origin(point)}, {point.value}")
        if point.name in RECIPES:
            click.echo(f"  taken   that is Quorum's; choose --recipe {point.value}")


def _head(recipe: Recipe) -> None:
    click.secho(recipe.name, bold=True)
    click.echo(f"  {recipe.summary}")
    click.echo(f"  agents  {', '.join(recipe.agents)}")
    click.echo(f"  paper   {recipe.paper}")


def _details(recipe: Recipe) -> None:
    usual = ", ".join(f"{name} {getattr(recipe, name)}" for name in USUAL)
    sampled = "of every role" if recipe.one_temperature else "of a model's candidates after its first"
    click.echo(f"  usual   {usual} {sampled}")
    switches = [item for item in fields(recipe) if item.name in recipe.switches()]
    if switches:
        click.secho("switches and limits (--switch NAME=VALUE)", bold=True)
    for item in switches:
        paper = f"; the paper: {item.metadata['paper']}" if item.metadata["paper"] else ""
        click.echo(f"  {item.name}={_value(getattr(recipe, item.name))}{paper}")
        click.echo(f"      {item.metadata['meaning']}")
    if recipe.presets:
        click.secho("presets (--preset NAME)", bold=True)
    for name, values in recipe.presets.items():
        click.echo(f"  {name}  {', '.join(f'{key}={_value(value)}' for key, value in values.items())}")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
