"""The house itself: whose the package names are, what is imported when, what the pins promise."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FLOORS = ("evals", "graph", "agents", "tools", "knowledge")
"""Folders at the root that are packages of ``quorum``, from the top down."""
NEVER_AT_IMPORT = {"sentence_transformers", "torch", "dask", "distributed", "faiss", "pandas", "psycopg"}
NEVER_AT_IMPORT |= {"snowflake", "sqlalchemy", "google.cloud"}
HEAVY = NEVER_AT_IMPORT | {"langgraph", "langchain_openai"}
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".html", ".sql", ".sh", ""}


def run(command: list[str], folder: Path, **variables: str) -> str:
    """The output of a command that must succeed."""
    env = os.environ | variables
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_after(code: str, root: Path) -> set[str]:
    """The names of all modules that a fresh interpreter has loaded after ``code``."""
    script = f"{code}\nimport sys; print('\\n'.join(['MODULES', *sys.modules]))"
    printed = run([sys.executable, "-c", script], root, PYTHONPATH=str(root))
    return set(printed.rpartition("MODULES\n")[2].split())


def files(root: Path) -> list[Path]:
    """Every text file of the project that is, or would be, under version control."""
    names = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], root).split("\0")
    paths = [root / name for name in names if name]
    return [path for path in paths if path.is_file() and path.suffix in TEXT]


def test_the_floors_are_packages_of_quorum_in_the_checkout_in_the_wheel_and_in_the_layers(root: Path) -> None:
    for floor in FLOORS:
        module = importlib.import_module(f"quorum.{floor}")
        assert Path(str(module.__file__)).resolve().parent == root / floor
        assert (root / "quorum" / floor).readlink() == Path("..", floor)
    tool = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["only-include"]) == {"quorum", *FLOORS}
    assert wheel["sources"] == {floor: f"quorum/{floor}" for floor in FLOORS}
    assert set(wheel["exclude"]) == {f"/quorum/{floor}" for floor in FLOORS}
    assert tuple(tool["importlinter"]["contracts"][0]["layers"][1:]) == FLOORS


@pytest.mark.heavy
def test_an_editable_install_makes_the_links_and_says_what_is_in_their_place(
    root: Path, tmp_path: Path
) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "quorum/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((root / name).read_bytes())
    (tmp_path / "quorum" / "tools").mkdir()
    command = [sys.executable, "-c", "from hatchling.build import build_editable; build_editable('out')"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Cannot make the link tools in quorum/: File exists." in refused.stderr
    (tmp_path / "quorum" / "tools").rmdir()
    for _ in range(2):
        run(command, tmp_path)
        made = {path.name: path.readlink() for path in (tmp_path / "quorum").iterdir() if path.is_symlink()}
        assert made == {floor: Path("..", floor) for floor in FLOORS}


URLS = (
    "duckdb:///none.duckdb",
    "sqlite:///none.db",
    "postgresql://nobody@nowhere/none",
    "snowflake://no/none",
)
CLI = "from quorum.cli import cli; cli([{}], standalone_mode=False)"
LIGHT = """
import quorum.graph.strategies, quorum.tools.experts, quorum.tools.models, quorum.agents.base
from quorum.knowledge import syntax
from quorum.knowledge.documents import search as documents
from quorum.knowledge.search.index import SentenceTransformerEmbedder
SentenceTransformerEmbedder("some/model").name
"""
LIBRARIES = {"bm25s", "sqlglot", "pyarrow", "numpy", "langchain", "langchain_core", "openai", "tiktoken"}
DRIVERS = {"duckdb", "psycopg", "snowflake.connector", "sqlite3"}


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import quorum.cli", HEAVY),
        ("import quorum; from quorum.settings import Settings; Settings()", HEAVY),
        (CLI.format("'ask', '--help'"), HEAVY),
        (CLI.format("'guard', '--dialect', 'mysql', 'SELECT 1'"), HEAVY),
        (CLI.format("'history'"), HEAVY),
        (CLI.format("'--help'"), {*HEAVY, "pydantic", "rich", "sqlglot", "asyncio", "quorum.commands"}),
        (f"from quorum.tools.databases import connect; [connect(url) for url in {URLS}]", DRIVERS),
        ("import quorum.graph.context", {*HEAVY, "langchain_core", "pyarrow"}),
        (LIGHT, HEAVY | LIBRARIES | DRIVERS),
    ],
)
def test_nothing_is_loaded_before_it_is_used(code: str, absent: set[str], root: Path) -> None:
    """The front door opens without heavy packages, a database without the graph, help without a command."""
    loaded = loaded_after(code, root)
    assert "quorum" in loaded
    assert loaded.isdisjoint(absent)


@pytest.mark.heavy
def test_importing_everything_loads_no_engine_of_embeddings_or_clouds(root: Path) -> None:
    found = [info.name for info in pkgutil.walk_packages([str(root / "quorum")], "quorum.")]
    names = [name for name in found if not name.endswith(("__main__", ".preloaded"))]
    assert len(names) > 60
    loaded = loaded_after("\n".join(f"import {name}" for name in names), root)
    assert set(names) <= loaded
    assert loaded.isdisjoint(NEVER_AT_IMPORT)


def test_a_question_loads_no_pandas(root: Path, tmp_path: Path) -> None:
    """Arrow loads it, where it is installed, for any conversion to or from Python values."""
    asked = "ask_sync('How many orders did each channel bring?', db='sample', models=['offline'], home=HOME)"
    code = f"from quorum import ask_sync; HOME = {str(tmp_path)!r}; assert {asked}.row_count > 1"
    assert "pandas" not in loaded_after(code, root)


def test_no_file_names_a_path_of_somebodys_machine(root: Path) -> None:
    homes = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/\w")
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in files(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if homes.search(line) and path.name != Path(__file__).name
    ]
    assert found == []


def pins(root: Path) -> dict[str, str]:
    """The versions by name; whatever is no plain pin fails."""
    text = (root / "constraints.txt").read_text()
    assert "://" not in text
    parsed = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    assert all(pin.marker is None and [part.operator for part in pin.specifier] == ["=="] for pin in parsed)
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in parsed}


def test_every_requirement_is_pinned_to_a_version_that_it_allows(root: Path) -> None:
    pinned = pins(root)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for line in sum(project["optional-dependencies"].values(), project["dependencies"]):
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), line


def test_what_is_installed_is_what_is_pinned(root: Path) -> None:
    pinned = pins(root)
    drifted = {}
    for each in distributions():
        version = each.version.partition("+")[0]  # torch's CPU wheel is 2.13.0+cpu
        if version != pinned.get(canonicalize_name(each.name), version):
            drifted[each.name] = version
    assert drifted == {}


@pytest.mark.heavy
def test_a_script_beside_modules_of_our_folders_names_asks_and_imports_its_own(
    root: Path, tmp_path: Path
) -> None:
    for name in FLOORS:
        (tmp_path / f"{name}.py").write_text(f"OWN = {name!r}\n")
    script = tmp_path / "script.py"
    script.write_text(
        "from quorum import ask_sync\n"
        "answer = ask_sync('How many customers are there?', db='sample', models=['offline'])\n"
        f"import {', '.join(FLOORS)}\n"
        f"assert [{', '.join(f'{name}.OWN' for name in FLOORS)}] == {list(FLOORS)}\n"
        "print(answer.status, answer.columns)\n"
    )
    home = {"QUORUM_HOME": str(tmp_path / "home"), "PYTHONPATH": str(root)}
    assert run([sys.executable, str(script)], tmp_path, **home).startswith("answered")


@pytest.mark.heavy
def test_a_wheel_and_one_built_from_the_sdist_hold_the_same_files(root: Path, tmp_path: Path) -> None:
    def build(target: str, folder: Path, out: Path) -> Path:
        run([sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)], folder)
        return next(out.iterdir())

    with tarfile.open(build("sdist", root, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("quorum_sql-*/")
    names = []
    for number, folder in enumerate((root, unpacked)):
        with zipfile.ZipFile(build("wheel", folder, tmp_path / f"wheel{number}")) as wheel:
            names.append({name for name in wheel.namelist() if "__pycache__" not in name})
    assert names[0] == names[1]
    assert {name.partition("/")[0] for name in names[0]} == {"quorum", f"{unpacked.name}.dist-info"}
    for floor in FLOORS:
        inside = {str(path.relative_to(root)) for path in files(root) if path.is_relative_to(root / floor)}
        assert {f"quorum/{name}" for name in inside} <= names[0]
