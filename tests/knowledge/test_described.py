"""Descriptions beside a database: the right column gets them, whatever the file looks like."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_resources
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.definitions import FOLDER, with_descriptions

HEAD = "original_column_name,column_name,column_description,data_format,value_description\n"
KIND = Column("kind", "TEXT", "as the vet says")
PET = Table("Pet", (Column("CDSCode", "TEXT"), KIND, Column("age", "INT")))
CATALOG = Catalog("zoo", "sqlite", (PET, Table("owner", (Column("name", "TEXT"),))))


def described(folder: Path, text: str | bytes, name: str = "Pet.csv", catalog: Catalog = CATALOG) -> Catalog:
    content = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(content)
    return with_descriptions(catalog, folder)


def told(catalog: Catalog) -> dict[str, str]:
    return {column.name: column.description for _, column in catalog.columns() if column.description}


def test_a_column_gets_its_name_its_meaning_and_its_values(tmp_path: Path) -> None:
    lines = 'CDSCode,CDS code,"the school, as counted",text,\nkind,kind,,text,"cat: a cat\ndog:  a dog"\n'
    found = described(tmp_path, HEAD + lines + "age,age,age,integer,\n")
    assert told(found) == {
        "CDSCode": "CDS code: the school, as counted",
        "kind": "as the vet says; values: cat: a cat dog: a dog",
    }
    assert found.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_files_in_any_of_the_encodings(tmp_path: Path, encoding: str) -> None:
    text = HEAD + " AGE ,,in années,integer,é\r\n"
    assert told(described(tmp_path, text.encode(encoding), "PET.csv"))["age"] == "in années; values: é"
    for byte, shown in ((b"\x80", "€"), (b"\x81", "\x81")):  # of Windows' code page, and of none
        content = HEAD.encode() + b"age,,x" + byte + b"y,,\n"
        assert told(described(tmp_path, content, "PET.csv"))["age"] == f"x{shown}y"


def test_what_fits_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "moon.csv").write_text(HEAD)
    found = described(tmp_path, HEAD + "age,,years,integer,\nweight,,kilos,real,\n\n,,,,\n")
    assert told(found)["age"] == "years"
    assert found.notes == (
        f"Pet.csv in {tmp_path.name} describes no column of Pet: weight.",
        f"{tmp_path.name} has files of no table: moon.csv.",
    )


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEAD, HEAD + "age\n", HEAD + "age,,,,\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    assert described(tmp_path, text) == CATALOG


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", locked)
    found = described(tmp_path, HEAD)
    assert found.notes == (f"Pet.csv in {tmp_path.name} cannot be read: Permission denied.",)
    assert told(found) == {"kind": "as the vet says"}


async def test_a_run_sees_them_in_the_schema(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "zoo.sqlite") as connection:
        connection.execute("CREATE TABLE pet (name TEXT, age INTEGER)")
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "pet.csv").write_text(HEAD + "age,,years since birth,integer,\n")
    options = RunOptions(
        database=f"sqlite:///{tmp_path}/zoo.sqlite", models=["offline"], home=str(tmp_path / "home")
    )
    resources = await open_resources(options)
    try:
        assert told(resources.catalog) == {"age": "years since birth"}
        assert "years since birth" in resources.schema.text
    finally:
        await resources.aclose()
