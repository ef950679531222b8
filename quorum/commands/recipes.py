"""``quorum recipes``: which agents run, after which paper, with which switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from quorum.graph.recipes.recipe import Recipe


@click.command(short_help="List the recipes, or one with its switches and deviations.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes, or all about one: its switches with the paper's values, and where it departs from it.

    Recipes of other packages follow, each with its package.

    Choose one with `quorum ask --recipe NAME`, its switches with `--switch NAME=VALUE`.
    """
    import json

    from quorum.graph.recipes import RECIPES, find_recipe

    if name is None:
        plugged_in = _plugged_in()
        if as_json:
            found = [*map(_about, RECIPES.values()), *plugged_in]
            click.echo(json.dumps(found, indent=2, ensure_ascii=False))
            return
        for recipe in RECIPES.values():
            _head(recipe)
        for each in plugged_in:
            click.secho(each["name"], bold=True)
            click.echo(f"  from    {each['package']}, {each['place']}")
            if each["name"] in RECIPES:
                click.echo(f"  taken   that is Quorum's; choose --recipe {each['place']}")
        return
    recipe = find_recipe(name)
    if as_json:
        click.echo(json.dumps(_about(recipe) | _details(recipe), indent=2, ensure_ascii=False))
        return
    _head(recipe)
    _show(_details(recipe))


def _about(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "paper": recipe.paper,
        "agents": list(recipe.agents),
    }


def _plugged_in() -> list[dict[str, str]]:
    """Return the recipes of other packages, which are not imported."""
    from quorum.tools.plugins import RECIPES, installed, origin

    return [
        {"name": point.name, "package": origin(point), "place": point.value} for point in installed(RECIPES)
    ]


def _details(recipe: Recipe) -> dict[str, Any]:
    from dataclasses import asdict, fields

    switches = [
        {"name": item.name, "default": getattr(recipe, item.name), **item.metadata}
        for item in fields(recipe)
        if item.name in recipe.switches()
    ]
    return {
        "votes": recipe.votes,
        "strategy": recipe.strategy,
        "stopping": recipe.stopping,
        "temperature": recipe.temperature,
        "one_temperature": recipe.one_temperature,
        "switches": switches,
        "presets": {name: dict(values) for name, values in recipe.presets.items()},
        "deviations": [asdict(each) for each in recipe.deviations],
    }


def _head(recipe: Recipe) -> None:
    click.secho(recipe.name, bold=True)
    click.echo(f"  {recipe.summary}")
    click.echo(f"  agents  {', '.join(recipe.agents)}")
    click.echo(f"  paper   {recipe.paper}")


def _show(details: dict[str, Any]) -> None:
    usual = ", ".join(f"{name} {details[name]}" for name in ("votes", "strategy", "stopping", "temperature"))
    sampled = "of every role" if details["one_temperature"] else "of a model's candidates after its first"
    click.echo(f"  usual   {usual} {sampled}")
    if details["switches"]:
        click.secho("switches and limits (--switch NAME=VALUE)", bold=True)
    for each in details["switches"]:
        paper = f"; the paper: {each['paper']}" if each["paper"] else ""
        click.echo(f"  {each['name']}={_value(each['default'])}{paper}\n      {each['meaning']}")
    if details["presets"]:
        click.secho("presets (--preset NAME)", bold=True)
    for name, values in details["presets"].items():
        click.echo(f"  {name}  {', '.join(f'{key}={_value(value)}' for key, value in values.items())}")
    if details["deviations"]:
        click.secho("ours, not the paper's", bold=True)
    for each in details["deviations"]:
        click.echo(f"  {each['ours']}\n      paper: {each['paper']}\n      why: {each['why']}")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
