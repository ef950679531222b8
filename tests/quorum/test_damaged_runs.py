"""Run folders that are damaged, and disks that are full: what is said, and what still works."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorum import ask
from quorum.cli import cli
from quorum.graph.runs import Event, RunFolder
from tests.engines import start_no_process
from tests.graph.shop import make_shop
from tests.quorum.conftest import python

DEEP, GARBAGE = b"[" * 100_000, bytes(range(256)) * 4
QUESTION = ("How many customers are there?", "--model", "offline")
COMMANDS = {
    "show": ("trace", "show", "last"),
    "page": ("trace", "show", "last", "--html", "page.html"),
    "json": ("trace", "show", "last", "--json"),
    "list": ("history",),
    "resume": ("ask", "-q", "--resume", "last"),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished run."""
    home = tmp_path_factory.mktemp("asked")
    shop = f"sqlite:///{make_shop(home / 'shop.db')}"
    with pytest.MonkeyPatch.context() as patch:
        start_no_process(patch)
        asking = ["ask", "-q", *QUESTION, "--db", shop, "--home", str(home)]
        assert CliRunner().invoke(cli, asking).exit_code == 0
    return home


@pytest.fixture
def run(asked: Path, tmp_path: Path) -> Path:
    """The folder of a copy of that run."""
    shutil.copytree(asked, tmp_path / ".quorum")
    return RunFolder.open(tmp_path / ".quorum", "last").folder


def _odd(file: Path) -> bytes:
    """Values of other types than the file's own."""
    return re.sub(rb'"(t|options|status)": ?', rb'"\1": [7], "own": ', file.read_bytes())


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize("file", ["events.jsonl", "run.json", "answer.json", "checkpoint.sqlite", "blobs"])
def test_no_damage_ends_in_a_traceback(run: Path, file: str, unfinished: bool) -> None:
    whole = shutil.copytree(run, run.parent.parent / "whole")
    for damage in (b"", GARBAGE, b"null\n", b"{}\n", DEEP + b"\n", "half", "middle", "odd"):
        for command in COMMANDS.values():
            shutil.rmtree(run)
            shutil.copytree(whole, run)
            if unfinished:
                (run / "answer.json").unlink()
            for each in [*(run / file).iterdir()] if file == "blobs" else [run / file]:
                if each.exists():
                    data, middle = each.read_bytes(), each.stat().st_size // 2
                    made = {"half": data[:middle], "middle": data[:middle] + GARBAGE + data[middle:]}
                    each.write_bytes(damage if isinstance(damage, bytes) else made.get(damage) or _odd(each))
            ended = CliRunner().invoke(cli, command)
            assert ended.exception is None or isinstance(ended.exception, SystemExit), (damage, command)
            assert ended.exit_code in (0, 2)


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("events.jsonl", b'{"t":1,"kind":"plan"}\n\xff\xfe\n', "Line 2 of "),
        ("events.jsonl", b'{"t":1,"kind":"plan","usage":{"model_calls":"x"}}\n', "its usage is no number"),
        ("answer.json", b"{}", "is no answer: its question does not fit"),
        ("run.json", b'{"options": 7}', "is damaged"),
        ("checkpoint.sqlite", GARBAGE, "Delete that file, and the run begins again"),
    ],
)
def test_damage_is_named_with_what_to_do(run: Path, file: str, damage: bytes, said: str) -> None:
    if file != "answer.json":
        (run / "answer.json").unlink()
    (run / file).write_bytes(damage)
    ended = CliRunner().invoke(cli, COMMANDS["resume"])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert file in ended.stderr


@pytest.mark.heavy
def test_a_disk_that_fills_up_is_named_and_the_run_goes_on_later(
    asked: Path, tmp_path: Path, root: Path
) -> None:
    def ask(room: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask in a process none of whose files may grow beyond so many bytes."""
        limit = (room, resource.RLIM_INFINITY)
        given = ("-m", "quorum", "ask", *arguments, "--home", str(tmp_path / "home"))
        return python(root, *given, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))

    full = ask(60_000, *QUESTION, "--db", f"sqlite:///{asked}/shop.db")
    assert full.returncode == 2
    assert "This machine cannot go on: " in full.stderr
    assert "--resume" in full.stderr
    assert "Traceback" not in full.stderr
    resumed = ask(resource.RLIM_INFINITY, "--resume", "last", "--json")
    assert json.loads(resumed.stdout)["rows"] == [[3]]


async def test_an_answer_is_kept_that_the_disk_has_no_room_for(asked: Path, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(event: Event) -> None:
        if event["kind"] == "answer":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))

    try:
        shop = f"sqlite:///{asked}/shop.db"
        answer = await ask(QUESTION[0], db=shop, models="offline", home=tmp_path / "full", on_event=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert answer.rows == [[3]]
    assert any("The trace is incomplete" in warning for warning in answer.warnings)
