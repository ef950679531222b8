"""Resuming a run: which options it keeps, which may change, which must be given again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorum.graph.options import RunOptions
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings, variables_of
from quorum.tools.urls import REDACTED, mask_url


def resumed(run: str, settings: Settings, question: str) -> tuple[RunFolder, str, RunOptions]:
    """The run's folder, its question and its options.

    Raises:
        ConfigurationError: There is no such run, or it cannot go on as asked.
    """
    if question.strip():
        raise ConfigurationError("A run that goes on has its own question.", hint="Leave yours out.")
    folder = RunFolder.open(settings.home, run)
    meta = folder.meta()
    options = resumed_options(meta, settings)
    return folder, str(meta["question"]), options


def resumed_options(meta: dict[str, Any], settings: Settings) -> RunOptions:
    """The run's own options (``meta`` is its ``run.json``), with what is given again.

    Raises:
        ConfigurationError: A flag asks for something that the run keeps to itself, or a URL that
            was kept without its password is not given again.
    """
    kept = meta.get("options")
    if not isinstance(kept, dict) or not meta.get("question"):
        raise ConfigurationError("The run's run.json lacks its question or its options.", hint="Ask anew.")
    declared = settings.declared()
    anew = [name for name, option in declared.items() if option.anew]
    given = {name for name, source in settings.provenance().items() if source == "flag"}
    redacted = [name for name in ("database", "base_url") if REDACTED in str(kept.get(name, ""))]
    placed = RunOptions.placed({name: getattr(settings, name) for name in given}, Path.cwd())
    given -= {name for name in given if placed[name] == kept.get(name)}  # as it was
    if wrong := sorted(given.difference(anew, redacted)):
        flags = {name: f" ({declared[name].flag})" if declared[name].flag else "" for name in wrong}
        raise ConfigurationError(
            f"A run stays with what it was asked with; it keeps its own "
            f"{', '.join(name + flag for name, flag in flags.items())}.",
            hint=f"Leave that out. What may be given anew: {', '.join(anew)}.",
        )
    changes = {name: getattr(settings, name) for name in given.intersection(anew)}
    changes |= {name: _given_again(name, kept[name], settings) for name in redacted if name not in changes}
    changes["home"] = settings.home
    return RunOptions.from_dict(kept | RunOptions.placed(changes, Path.cwd()))


def _given_again(name: str, kept: str | list[str], settings: Settings) -> str | list[str]:
    """The URLs with their passwords; they must be the same ones."""
    given: str | list[str] = getattr(settings, name)
    if not given:
        flag = settings.declared()[name].flag or f"--{name.replace('_', '-')}"
        raise ConfigurationError(
            f"The run's {name} held a password, which is not kept: {_masked(kept)}.",
            hint=f"Give it again with {flag}, {variables_of(name)[0]} or `{name}` in quorum.toml.",
        )
    if _masked([_redacted(url, settings) for url in _listed(given)]) != _masked(kept):
        raise ConfigurationError(
            f"The run's {name} is {_masked(kept)}, not {_masked(given)}.", hint="Give it as it was."
        )
    return given


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _masked(value: str | list[str]) -> str:
    return ", ".join(map(mask_url, _listed(value)))


def _redacted(url: str, settings: Settings) -> str:
    for secret in sorted(settings.secrets(), key=len, reverse=True):
        url = url.replace(secret, REDACTED)
    return url
