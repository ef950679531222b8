"""Settings: flags > environment > ``.env`` > ``quorum.toml`` > defaults, and where each came from.

``quorum.toml`` and ``.env`` are looked for in the working directory, then in its parents. The
keys of ``quorum.toml`` are the fields below, without a section; its relative paths start at the
file. ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` are read where ``QUORUM_…`` does not say otherwise.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from dotenv import dotenv_values
from pydantic import AliasChoices, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import anchored, mask_url, url_secrets
from quorum.values import AUTO, Bytes, Names, Place, Prices, Seconds, StoppingRule, Strategy, Switches

CONFIG_FILE = "quorum.toml"
_SECRET_FIELDS = {"api_key", "database", "base_url"}


class Settings(BaseSettings):
    """Everything that can be set, with its default.

    Raises:
        ConfigurationError: A value does not fit, ``quorum.toml`` cannot be read, or it or a flag
            names no setting. The message names the field and where the value came from.
    """

    model_config = SettingsConfigDict(
        env_prefix="QUORUM_",
        env_ignore_empty=True,
        env_file_encoding="utf-8",
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    database: str | None = Field(None, repr=False, description="database URL, e.g. sqlite:///shop.db")
    recipe: str = Field("quorum", description="which agents run, in which order")
    models: Names = Field([], description="model specs, provider:name; several make an ensemble")
    votes: int | None = Field(None, ge=1, le=64, description="candidates that vote, at most")
    strategy: Strategy = Field(AUTO, description="how candidates vote")
    stopping: StoppingRule = Field(AUTO, description="when enough candidates have voted")
    clarify: bool = Field(False, description="ask which answer is meant when strong ones disagree")
    abstain_below: float = Field(0.0, ge=0, le=1, description="withhold answers of less confidence")
    switches: Switches = Field({}, description="the recipe's switches and limits, set otherwise")
    documents: Place | None = Field(None, description="folder of documents with business terms")
    demonstrations: Place | None = Field(None, description="JSON lines of questions with their SQL")
    base_url: str | None = Field(
        None,
        repr=False,
        validation_alias=AliasChoices("QUORUM_BASE_URL", "OPENAI_BASE_URL"),
        description="an OpenAI-compatible endpoint",
    )
    api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("QUORUM_API_KEY", "OPENAI_API_KEY"),
        description="key for the models' endpoint",
    )
    temperature: float | None = Field(None, ge=0, le=2, description="of the candidates that are sampled")
    seed: int = Field(0, description="start of everything drawn at random")
    timeout: Seconds = Field(120.0, gt=0, description="longest silence of a model, in seconds")
    requests_per_second: float | None = Field(None, gt=0, description="model calls per second, all together")
    max_calls: int | None = Field(None, ge=1, description="model calls per question")
    max_usd: float | None = Field(
        None, gt=0, description="dollars per question; may be exceeded by the calls under way"
    )
    deadline: Seconds | None = Field(None, gt=0, description="seconds per question: 90, 90s, 5m")
    max_rows: int = Field(100_000, ge=1, description="rows kept of one result")
    max_bytes: Bytes = Field(64 * 2**20, ge=1024, description="bytes kept of one result: 64MiB")
    query_timeout: Seconds = Field(60.0, gt=0, description="seconds for one query")
    schema_tokens: int = Field(30_000, ge=1, description="token budget of the schema text in prompts")
    link_above: int = Field(60_000, ge=1, description="schema texts of more tokens are linked first")
    prices: Prices = Field({}, description="dollars per million tokens: {model: {input, output, cached}}")
    home: Place = Field(Path(".quorum"), description="folder of traces and caches")
    retrieval: Literal["lexical", "hybrid"] = Field("lexical", description="how documents are found")
    embedding_model: str = Field("", description="a sentence-transformers model, for hybrid retrieval")

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, **flags: Any) -> None:
        for name in flags:
            if name not in type(self).model_fields:
                raise ConfigurationError(f"There is no setting {name!r}.", hint=_nearest_setting(name))
        found = _Files()
        sources = {name: found.source(name, flags) for name in type(self).model_fields}
        try:
            super().__init__(_env_file=found.dotenv, **flags)
        except ValidationError as error:
            raise _explain(error, sources) from None  # the cause would show secret values
        except SettingsError as error:
            raise _no_json(error, sources) from None
        self._sources = sources

    @classmethod
    def load(cls, **flags: Any) -> Self:
        """Settings from all sources; flags that are None or empty count as not given."""
        return cls(**{name: value for name, value in flags.items() if value is not None and value != ()})

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (the base class passes it)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = InitSettingsSource(settings_cls, _Files().toml)
        return init_settings, env_settings, dotenv_settings, toml

    def provenance(self) -> dict[str, str]:
        """Each field's source: ``flag``, ``environment X``, ``.env X``, ``quorum.toml`` or ``default``."""
        return dict(self._sources)

    def changed(self, **flags: Any) -> Self:
        """A copy in which the given values win; None and empty count as not given.

        Raises:
            ConfigurationError: A value does not fit.
        """
        given = {name: value for name, value in flags.items() if value is not None and value != ()}
        mine = {name: getattr(self, name) for name, source in self._sources.items() if source == "flag"}
        return type(self)(**mine | given)

    def secrets(self) -> list[str]:
        """Texts that must never be printed or traced: the key, the URLs' passwords."""
        key = [self.api_key.get_secret_value()] if self.api_key else []
        return [*key, *url_secrets(self.database or ""), *url_secrets(self.base_url or "")]

    def shown(self) -> dict[str, str]:
        """Every value as text for people, secrets masked."""
        return {name: self._show(name, getattr(self, name)) for name in type(self).model_fields}

    def _show(self, name: str, value: Any) -> str:
        if isinstance(value, SecretStr):
            return "set (hidden)"
        if name in ("database", "base_url") and value:
            return mask_url(str(value))
        return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


class _Files:
    """``quorum.toml`` and ``.env`` as found from the working directory."""

    def __init__(self) -> None:
        self.config = _nearest(CONFIG_FILE)
        self.dotenv = _nearest(".env")
        self.toml = _read_toml(self.config) if self.config else {}
        self._env = {name.upper(): value for name, value in os.environ.items() if value}
        pairs = dotenv_values(self.dotenv) if self.dotenv else {}
        self._dotenv = {name.upper(): value for name, value in pairs.items() if value}

    def source(self, field: str, flags: dict[str, Any]) -> str:
        if field in flags:
            return "flag"
        names = [f"QUORUM_{field.upper()}", f"OPENAI_{field.upper()}"]
        names = names if field in ("api_key", "base_url") else names[:1]
        for name in names:
            if name in self._env:
                return f"environment {name}"
        for name in names:
            if name in self._dotenv:
                return f".env {name}"
        return CONFIG_FILE if field in self.toml else "default"


def unknown_variables() -> dict[str, str]:
    """``QUORUM_…`` variables in the environment that are no setting, each with the nearest name."""
    known = [f"QUORUM_{name.upper()}" for name in Settings.model_fields]
    strangers = [name for name in os.environ if name.startswith("QUORUM_") and name not in known]
    return {name: (difflib.get_close_matches(name, known, 1) or [""])[0] for name in strangers}


def _nearest(name: str) -> Path | None:
    here = Path.cwd()
    return next((folder / name for folder in (here, *here.parents) if (folder / name).is_file()), None)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"Cannot read {path}: {error}.") from error
    for key in values:
        if key not in Settings.model_fields:
            raise ConfigurationError(
                f"{path} has a key {key!r} that is no setting.", hint=_nearest_setting(key)
            )
    for key in ("documents", "demonstrations", "home"):
        if isinstance(values.get(key), str) and not values[key].startswith("~"):
            values[key] = str(path.parent / values[key])
    if isinstance(values.get("database"), str):
        values["database"] = anchored(values["database"], path.parent)
    return values


def _nearest_setting(name: str) -> str:
    near = difflib.get_close_matches(name, Settings.model_fields, 1)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(Settings.model_fields)}."


def _no_json(error: SettingsError, sources: dict[str, str]) -> ConfigurationError:
    """A variable of a mapping that is no JSON, by the name under which it was set."""
    found = re.search(r'field "(\w+)"', str(error))
    name = found[1] if found else ""
    return ConfigurationError(
        f"A setting does not fit: {name} ({sources.get(name, 'environment')}) is not JSON: "
        f"{error.__cause__ or error}."
    )


def _explain(error: ValidationError, sources: dict[str, str]) -> ConfigurationError:
    lines = []
    for problem in error.errors(include_url=False):
        name = re.sub(r"^(QUORUM|OPENAI)_", "", str(problem["loc"][0])).lower()
        where = ".".join([name, *map(str, problem["loc"][1:])])
        value = "" if name in _SECRET_FIELDS else f" = {problem['input']!r}"
        said = str(problem["msg"]).removeprefix("Value error, ")
        lines.append(f"{where}{value} ({sources.get(name, 'flag')}): {said}.")
    return ConfigurationError("A setting does not fit: " + " ".join(lines))
