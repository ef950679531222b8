"""``bigquery://project/dataset`` and who asks: credentials come from Google's own places."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import names_in, server_options

OPTIONS = ("dataset", "billing_project", "location", "credentials", "endpoint", "anonymous")
EXAMPLE = (
    "Write bigquery://project/dataset, or bigquery://project?dataset=a,other-project.b; without a dataset "
    "all of the project's are shown. Credentials are the application's default ones, or ?credentials=KEYFILE."
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


@dataclass(frozen=True)
class Target:
    """The parts of a URL.

    Attributes:
        datasets: Those that may be read, of other projects as PROJECT.DATASET; none for all of the project.
        billing_project: Who pays for queries; the project itself if none is named.
        credentials: A service account's key file; empty for the application's default credentials.
        endpoint: Of a private server or an emulator; empty for Google's.
        anonymous: Ask without credentials, which only an emulator answers.
    """

    project: str
    datasets: tuple[str, ...] = ()
    billing_project: str = ""
    location: str = ""
    credentials: str = ""
    endpoint: str = ""
    anonymous: bool = False

    @classmethod
    def of(cls, url: str) -> Target:
        """Parse ``bigquery://``.

        Raises:
            ConfigurationError: It is malformed.
        """
        rest, _, query = url.partition("://")[2].partition("?")
        project, _, dataset = (unquote(part) for part in rest.partition("/"))
        if not _NAME.fullmatch(project) or "/" in dataset or "@" in rest:
            raise ConfigurationError("The URL names no project.", hint=EXAMPLE)
        options = server_options(query, OPTIONS, "BigQuery", EXAMPLE)
        datasets = names_in(f"{dataset},{options.pop('dataset', '')}")
        anonymous = options.pop("anonymous", "") == "1"
        if anonymous and "endpoint" not in options:
            raise ConfigurationError("anonymous=1 is for an endpoint of your own.", hint=EXAMPLE)
        return cls(project, datasets, anonymous=anonymous, **options)

    @property
    def place(self) -> str:
        """The database's place, for people."""
        return f"bigquery://{self.project}/{','.join(self.datasets)}".rstrip("/")

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Project and name of each dataset that is named."""
        found = (name.rpartition(".") for name in self.datasets)
        return tuple((project or self.project, dataset) for project, _, dataset in found)

    def scrubbed(self, text: str) -> str:
        """Return a text of the client without the path of the key file."""
        return text.replace(self.credentials, "the key file") if self.credentials else text

    def allows(self, project: str, dataset: str) -> bool:
        """Return True if tables of that dataset may be read."""
        return (project, dataset) in self.places if self.datasets else project == self.project

    def joined(self, other: Target) -> Target | None:
        """Return the datasets of both, paid for by the first one's project; None if another account would
        ask, or if one of two projects is meant as a whole."""
        if replace(other, project=self.project, datasets=self.datasets) != self:
            return None
        if not (self.datasets and other.datasets):
            return replace(self, datasets=()) if self.project == other.project else None
        both = dict.fromkeys((*self.places, *other.places))
        names = (name if project == self.project else f"{project}.{name}" for project, name in both)
        return replace(self, datasets=tuple(names))
