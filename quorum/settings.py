"""Settings: flags > environment > ``.env`` > ``quorum.toml`` > defaults, and where each came from.

``quorum.toml`` and ``.env`` are looked for in the working directory, then in its parents. The keys of
``quorum.toml`` are the fields of ``Settings``, without a section; its relative paths start at the file.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

from dotenv import dotenv_values
from pydantic import PrivateAttr, SecretStr, ValidationError

from quorum.graph.options import Options, RunOptions, option
from quorum.knowledge.errors import ConfigurationError, read_errors
from quorum.tools.urls import REDACTED, mask_url, url_secrets

CONFIG_FILE = "quorum.toml"
UNSET: dict[str, Any] = {"database": [], "models": []}
"""No database and no model by default: the offline demonstration answers only where it was asked for."""

NO_MODEL = """No model is configured. Name one in any of these ways:
  a flag            --model openai:gpt-4.1   (and OPENAI_API_KEY in the environment)
  an argument       models=["openai:gpt-4.1"]
  the environment   QUORUM_MODELS=openai:gpt-4.1   (a comma list makes an ensemble)
  quorum.toml       models = ["openai:gpt-4.1"]
Any OpenAI-compatible endpoint works: add --base-url, e.g. http://localhost:11434/v1.
`--model offline` needs no key, but is a rule-based demonstration and no language model."""

NO_DATABASE = """No database is given. Name one in any of these ways:
  a flag            --db sqlite:///shop.db   (or duckdb:///sales.duckdb)
  an argument       db="sqlite:///shop.db"
  the environment   QUORUM_DATABASE=sqlite:///shop.db
  quorum.toml       database = "sqlite:///shop.db"
Several (--db twice, a comma list, a list) are read in one question.
`--db sample` is the sample database that `quorum demo` asks."""


class Settings(Options):
    """The options as flags, environment, ``.env`` and ``quorum.toml`` set them, and the models' key.

    Args:
        flags: Win over all else; None and an empty tuple count as not given.

    Raises:
        ConfigurationError: A value does not fit, a file cannot be read, or it or a flag names no option.
            The message names the option and where the value came from.
    """

    api_key: SecretStr | None = option(
        None,
        "key of the endpoint; has no flag, because others see command lines",
        variable="OPENAI_API_KEY",
        secret=True,
        on_resume=True,
        measured=False,
    )

    _flags: dict[str, Any] = PrivateAttr()
    _sources: dict[str, str] = PrivateAttr()

    def __init__(self, **flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        self.check_names(given)
        found = _in_files_and_environment() | {name: (value, "flag") for name, value in given.items()}
        sources = {name: found[name][1] if name in found else "default" for name in type(self).model_fields}
        try:
            super().__init__(**UNSET | {name: value for name, (value, _) in found.items()})
        except ValidationError as error:
            raise self.explained(error, sources) from None  # the cause would show secret values
        self._flags, self._sources = given, sources

    def provenance(self) -> dict[str, str]:
        """Each field's source: ``flag``, ``environment X``, ``.env X``, ``quorum.toml`` or ``default``."""
        return dict(self._sources)

    def changed(self, **flags: Any) -> Self:
        """A copy in which the given values win; None and empty count as not given.

        Raises:
            ConfigurationError: A value does not fit.
        """
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        return type(self)(**self._flags | given)

    def only(self, names: Collection[str], **flags: Any) -> Self:
        """A copy with the given values of these names only, and those in ``flags``, which win."""
        return type(self)(**{name: value for name, value in self._flags.items() if name in names} | flags)

    def run_options(self) -> RunOptions:
        """The options of a run; its places are absolute, so that it may go on anywhere.

        Raises:
            ConfigurationError: No model or no database is set, or options do not fit together.
        """
        if not self.models:
            raise ConfigurationError(NO_MODEL)
        if not self.database:
            raise ConfigurationError(NO_DATABASE)
        values = {name: getattr(self, name) for name in RunOptions.model_fields}
        values |= {"kb": self.knowledge, "explored": self.explored_root}
        return RunOptions(**self.placed(values, Path.cwd()))

    @property
    def knowledge(self) -> Path:
        """The folder of verified answers."""
        return self.kb or self.home / "kb"

    @property
    def explored_root(self) -> Path:
        """The folder of what was explored, a database in each of its folders."""
        return self.explored or self.home / "explored"

    @property
    def key(self) -> str:
        """The models' key; empty for none."""
        return self.api_key.get_secret_value() if self.api_key else ""

    def secrets(self) -> list[str]:
        """Texts that must never be printed or traced: the key, the URLs' passwords."""
        urls = (*self.database, self.base_url, self.checkpoints)
        found = (secret for url in urls for secret in url_secrets(url))
        return [*([self.key] if self.key else []), *found]

    def shown(self) -> dict[str, str]:
        """Every value as text for people, secrets masked."""
        return {name: _shown(getattr(self, name)) for name in type(self).model_fields}


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "set (hidden)"
    if isinstance(value, list):
        return ", ".join(mask_url(str(each)) for each in value)
    return "" if value is None else mask_url(str(value))


def variables_of(name: str) -> list[str]:
    """The environment variables of an option; the first that is set counts."""
    return [f"QUORUM_{name.upper()}", *filter(None, [Settings.declared()[name].variable])]


def unknown_variables() -> dict[str, str]:
    """``QUORUM_…`` variables in the environment that are no setting, each with the nearest name."""
    known = [variables_of(name)[0] for name in Settings.model_fields]
    strangers = [name for name in os.environ if name.startswith("QUORUM_") and name not in known]
    return {name: (difflib.get_close_matches(name, known, 1) or [""])[0] for name in strangers}


def _in_files_and_environment() -> dict[str, tuple[Any, str]]:
    """Values as they are written, each with its source, of the strongest source that has one."""
    found = {name: (value, CONFIG_FILE) for name, value in _toml().items()}
    dotenv = _nearest(".env")
    with read_errors(dotenv):
        in_file = dotenv_values(dotenv) if dotenv else {}
    for source, variables in ((".env", in_file), ("environment", os.environ)):
        values = {name.upper(): value for name, value in variables.items() if value}
        for name in Settings.model_fields:
            if variable := next((one for one in variables_of(name) if one in values), ""):
                found[name] = (values[variable], f"{source} {variable}")
    return found


def _toml() -> dict[str, Any]:
    path = _nearest(CONFIG_FILE)
    if path is None:
        return {}
    with read_errors(path):
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    Settings.check_names(values, f"{path} has")
    return Settings.placed(values, path.parent)


def _nearest(name: str) -> Path | None:
    here = Path.cwd()
    return next((folder / name for folder in (here, *here.parents) if (folder / name).is_file()), None)


def resumed_options(meta: dict[str, Any], settings: Settings) -> RunOptions:
    """Return a run's own options, with what is given again.

    Args:
        meta: The run's ``run.json``.

    Raises:
        ConfigurationError: A flag asks for something that the run keeps to itself, or a URL that
            was kept without its password is not given again.
    """
    kept = meta.get("options")
    if not isinstance(kept, dict) or not meta.get("question"):
        raise ConfigurationError("The run's run.json lacks its question or its options.", hint="Ask again.")
    declared = settings.declared()
    again = [name for name, option in declared.items() if option.on_resume]
    given = {name for name, source in settings.provenance().items() if source == "flag"}
    urls = [name for name, option in declared.items() if option.secret and name in kept]
    redacted = [name for name in urls if REDACTED in str(kept[name])]
    placed = RunOptions.placed({name: getattr(settings, name) for name in given}, Path.cwd())
    given -= {name for name in given if placed[name] == kept.get(name)}  # as it was
    if wrong := sorted(given.difference(again, redacted)):
        flags = {name: f" ({declared[name].flag})" if declared[name].flag else "" for name in wrong}
        raise ConfigurationError(
            f"A run stays with what it was asked with; it keeps its own "
            f"{', '.join(name + flag for name, flag in flags.items())}.",
            hint=f"Leave that out. What may be given again: {', '.join(again)}.",
        )
    changes = {name: getattr(settings, name) for name in given.intersection(again)}
    changes |= {name: _given_again(name, kept[name], settings) for name in redacted if name not in changes}
    changes["home"] = settings.home
    return RunOptions.from_dict(kept | RunOptions.placed(changes, Path.cwd()))


def _given_again(name: str, kept: str | list[str], settings: Settings) -> str | list[str]:
    """Return the URLs with their passwords; they must be the same ones."""
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
