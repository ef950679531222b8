"""What no question can be asked without, and how to give it."""

from __future__ import annotations

from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings

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
`--db sample` is the sample database that `quorum demo` asks."""


def asked_of(settings: Settings) -> str:
    """The database to ask, once it is sure that there is a model to ask with.

    Raises:
        ConfigurationError: No model or no database is set.
    """
    if not settings.models:
        raise ConfigurationError(NO_MODEL)
    if not settings.database:
        raise ConfigurationError(NO_DATABASE)
    return settings.database
