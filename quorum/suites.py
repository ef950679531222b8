"""A suite as the command line names it: a benchmark's folder, or a file of the user's own questions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.evals.questions import Suite
    from quorum.settings import Settings

OWN = (".jsonl", ".csv")
"""Files with a user's own questions."""


def needed(folder: Path | None, flag: str) -> Path:
    """The folder that an option names.

    Raises:
        ConfigurationError: It was not given.
    """
    if folder is None:
        raise ConfigurationError(f"{flag} is missing.", hint="Name the benchmark's folder with it.")
    return folder


def open_suite(name: str, folder: Path | None, db: str | None = None, *, flag: str = "--data") -> Suite:
    """Read a benchmark, or a file of own questions.

    Args:
        folder: The benchmark's.
        db: URL of the database of own questions that name none; without it, the setting.
        flag: The option that names ``folder``, for errors.

    Raises:
        ConfigurationError: There is no such suite, it cannot be read, or an option does not belong to it.
    """
    if not name.casefold().endswith(OWN):
        from quorum.evals.paths import check_folder
        from quorum.evals.suites import SUITES, load_suite

        if db is not None:
            return _on_server(name, needed(folder, flag), db)
        if name in SUITES:
            check_folder(needed(folder, flag), hint=f"Name the benchmark's folder with {flag}.")
        return load_suite(name, folder or Path())
    from quorum.evals.suites.own import load_own
    from quorum.settings import Settings

    if folder is not None:
        raise ConfigurationError(
            f"{flag} is a benchmark's folder.", hint="Own questions need none: leave it out."
        )
    settings = Settings(database=None if db is None else [db])
    return with_sample(load_own(Path(name), database_of(settings)), settings.home)


def database_of(settings: Settings) -> str | None:
    """Return the URL of the database of own questions that name none; None if none is set.

    Raises:
        ConfigurationError: Several are set.
    """
    from quorum.tools.urls import anchored

    if len(settings.database) > 1:
        raise ConfigurationError("Own questions are on one database each.", hint="Name one with --db.")
    databases = [anchored(url, Path.cwd()) for url in settings.database]
    return databases[0] if databases else None


def _on_server(name: str, folder: Path, db: str) -> Suite:
    """A benchmark whose databases are on a server, by their names."""
    from quorum.evals.suites.defog import PLACE, load_on_server

    if name != "defog" or PLACE not in db:
        raise ConfigurationError(
            "--db belongs to own questions.",
            hint="A benchmark brings its databases: leave --db out. Those of defog may be on a server: "
            f"--db 'postgresql://user@host:5432/{PLACE}'.",
        )
    return load_on_server(folder, db)


def with_sample(suite: Suite, home: Path) -> Suite:
    """Questions on the sample database, which is made where it is not there yet, get its file's URL."""
    from quorum.evals.suites.files import sqlite_url
    from quorum.tools.sample import sample_database
    from quorum.tools.urls import SAMPLE

    if all(question.url != SAMPLE for question in suite.questions):
        return suite
    url = sqlite_url(sample_database(home / "sample"))
    questions = [replace(each, url=url) if each.url == SAMPLE else each for each in suite.questions]
    return replace(suite, questions=tuple(questions))
