"""The command line: exit codes, what goes to standard output, what errors say."""

from __future__ import annotations

import gc
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock, call

import httpx
import pytest
from click.testing import CliRunner

from quorum import checks
from quorum.cli import COMMANDS, cli, main
from quorum.graph.recipes import RECIPES
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.tools.databases import connect_all
from quorum.tools.garbage import YOUNG
from tests.graph.shop import changed
from tests.quorum.conftest import python, quorum
from tests.servers.postgres_server import PostgresServer


@pytest.fixture
def database(workplace: Path) -> str:
    odd = 'CREATE TABLE "order ""x""" (id INTEGER PRIMARY KEY, naïve TEXT)'
    customers = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)"
    changed(workplace / "shop.db", odd, customers, "INSERT INTO customers VALUES (1, 'Ann')")
    return "sqlite:///shop.db"


def test_help_lists_every_command() -> None:
    listing = quorum("--help").stdout
    for name, words in COMMANDS.items():
        assert name in listing
        assert words.split()[0] in listing
        assert quorum(name, "--help").exit_code == 0


def test_a_fault_of_ours_ends_with_70_and_is_a_json_object_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it imports, a command collects garbage rarely: that took a tenth of the time to its request."""
    seen: list[int] = []

    def broken(*_: object, **__: object) -> None:
        seen.append(gc.get_threshold()[0])
        raise ZeroDivisionError("by nought")

    before = gc.get_threshold()
    with monkeypatch.context() as patch:
        patch.setattr("quorum.cli.cli", broken)
        with pytest.raises(SystemExit) as ended:
            main()
    gc.set_threshold(*before)
    assert (ended.value.code, seen) == (70, [YOUNG])
    monkeypatch.setattr("quorum.graph.runs.RunFolder.open", broken)
    result = CliRunner().invoke(cli, ["trace", "show", "last", "--json"])
    assert isinstance(result.exception, ZeroDivisionError), "main makes it exit code 70"
    assert json.loads(result.stdout)["error"] == {"kind": "ZeroDivisionError", "message": "by nought"}


MISTAKES = """
aks
ask
ask "  "
ask q --votes many
ask q --votes 0 --model offline --db sample
ask q --deadline soon --model offline --db sample
ask q --nope
ask q --resume last
ask q --model offline
ask q --db sample
ask q --db sqlite:///missing.db --model offline
ask q --db cobol://h/db --model offline
guard "SELECT 1"
guard "SELECT 1" --dialect cobol
guard --file missing.jsonl
guard --file list.jsonl "SELECT 1"
schema show
schema show nothing-there
schema refresh cobol://host/db
trace show last
history --since soon
history --since 2026-13-01
history --since 999999w
doctor --nope
"""


def test_a_mistake_of_use_exits_with_2_and_is_one_json_object(
    workplace: Path, subtests: pytest.Subtests
) -> None:
    (workplace / "list.jsonl").touch()
    for line in MISTAKES.strip().splitlines():
        with subtests.test(line):
            result = quorum(*shlex.split(line))
            assert (result.exit_code, result.stdout) == (2, "")
            assert "Error: " in result.stderr
            if line == "aks":
                continue
            result = quorum(*shlex.split(line), "--json")
            found = json.loads(result.stdout)
            assert (result.exit_code, found["status"]) == (2, "error")
            assert found["error"]["message"]
            assert "Error: " in result.stderr
    assert json.loads(quorum("ask", "q", "--json", "--csv").stdout)["status"] == "error"
    assert quorum("guard", "--dialect", "cobol", "--", "--json").stdout == "", "an argument, no option"


def test_what_an_error_quotes_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(*_: object) -> None:
        raise ConfigurationError("the endpoint says \x1b[2J\x9b31m\u202e")

    monkeypatch.setattr("quorum.graph.runs.RunFolder.open", hostile)
    for arguments in (["trace", "show", "last"], ["trace", "show", "last", "--json"]):
        result = quorum(*arguments)
        assert result.exit_code == 2
        assert not set(result.output) & set("\x1b\x9b\u202e")


@pytest.mark.heavy
def test_a_terminal_that_is_not_utf_8_gets_every_text(database: str, run: Trace, root: Path) -> None:
    for encoding, text, arguments in (
        ("koi8-r", rb"na\xefve", ("schema", "show", database)),
        ("koi8-r", "naïve".encode(), ("schema", "show", database, "--json")),
        ("ascii", run.run_id.encode(), ("trace", "show", "last", "--full")),
    ):
        env = {"PYTHONIOENCODING": encoding}
        done = python(root, "-m", "quorum", *arguments, env=env, text=False)
        assert (done.returncode, done.stderr, text in done.stdout) == (0, b"", True)


@pytest.mark.heavy
def test_a_reader_that_leaves_early_is_no_failure(workplace: Path, run: Trace, root: Path) -> None:
    line = json.dumps({"dialect": "sqlite", "sql": "SELECT 1"})
    (workplace / "list.jsonl").write_text("\n".join([line] * 5_000))
    for arguments in ("guard --file list.jsonl", "trace show last --full"):
        piped = f"set -o pipefail; {sys.executable} -m quorum {arguments} | head -1"
        env = os.environ | {"PYTHONPATH": str(root)}
        done = subprocess.run(["bash", "-c", piped], env=env, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_guard_passes_a_read_refuses_a_write_and_names_the_nearest_names(database: str) -> None:
    for sql, given, code, said in (
        ("SELECT 1", ("--dialect", "sqlite"), 0, "pass: "),
        ("DROP TABLE t", ("--dialect", "sqlite"), 1, "refused: "),
        ("SELECT name FROM customers", ("--db", database), 0, "pass: "),
        ("SELECT * FROM custmers", ("--db", database), 1, "the schema says: There is no table custmers."),
        ("SELECT * FROM custmers", ("--db", database), 1, "Did you mean: customers"),
    ):
        result = quorum("guard", sql, *given)
        assert (result.exit_code, said in result.stdout) == (code, True), result.output
    piped = quorum("guard", "--dialect", "duckdb", "-", "--json", given="DELETE FROM t")
    assert (piped.exit_code, json.loads(piped.stdout)["verdict"]) == (1, "refused")
    found = json.loads(quorum("guard", "SELECT nme FROM customers", "--db", database, "--json").stdout)
    assert (found["verdict"], "Did you mean: name" in found["error"]) == ("pass", True)


@pytest.mark.parametrize("url", ["postgresql:/me:hush@h/d", "postgresql:me:hush@h/d", "mysql:/me:hu/sh@h/d"])
@pytest.mark.parametrize(
    "command", [("ask", "q", "--model", "offline"), ("doctor", "--model", "offline"), ("guard", "SELECT 1")]
)
def test_a_url_that_lacks_slashes_keeps_its_password_to_itself(url: str, command: tuple[str, ...]) -> None:
    result = quorum(*command, "--db", url)
    assert result.exit_code == 2
    assert "is no URL: after the colon come two slashes" in result.output
    assert "hu" not in result.output.replace("than", "")
    assert "hush" not in quorum("schema", "show", url).output


def test_guard_judges_each_line_of_a_list_in_order_whatever_it_holds(workplace: Path) -> None:
    good = json.dumps({"dialect": "sqlite", "sql": "SELECT 1"}).encode()
    bad = [
        b'{"dialect": "zz", "sql": "SELECT 1"}',
        b'{"sql": 1}',
        b"garbage",
        b'{"sql": "\xff"}',
        b"9" * 5000,
        b"",
    ]
    write = json.dumps({"dialect": "mysql", "sql": "DROP TABLE t"}).encode()
    lines = b"\n".join([good, *bad, good, write])
    (workplace / "list.jsonl").write_bytes(lines)
    for file in ("list.jsonl", "-"):
        result = CliRunner().invoke(cli, ["guard", "--file", file], input=lines)
        assert result.exit_code == 0
        verdicts = [json.loads(line) for line in result.stdout.splitlines()]
        assert [v["verdict"] for v in verdicts] == ["pass", *["refused"] * len(bad), "pass", "refused"]
        assert all(v["reason"].startswith(f"line {n}: ") for n, v in enumerate(verdicts[1:-2], 2))
        assert "blank" in verdicts[len(bad)]["reason"]


def test_schema_show_prints_the_text_of_prompts(database: str) -> None:
    refreshed = quorum("schema", "refresh", database)
    assert refreshed.stdout.startswith("shop: 2 tables, ")
    text = quorum("schema", "show", database).stdout
    assert "customers" in text
    assert "naïve" in text
    catalog = json.loads(quorum("schema", "show", database, "--json").stdout)
    assert sorted(table["name"] for table in catalog["tables"]) == ["customers", 'order "x"']


def test_the_history_finds_runs(run: Trace, workplace: Path, subtests: pytest.Subtests) -> None:
    meta = {"question": "How many?", "options": {"database": [f"{workplace}/tickets.db"]}}
    Trace.create(workplace / ".quorum", "20991231-later", meta=meta).close()
    both = ["unfinished", "answered"]
    for given, found in (
        ("", both),
        ("-n 1", both[:1]),
        ("RATING average", both[1:]),
        ("average price", []),
        ("--since 2026-11-20", both),
        ("--since 1m", both),
        ("--since 2999-01-01T12:00", []),
        ("--db sqlite:///tickets.db", both[:1]),
        ("--db other.db", []),
        ("--home empty", []),
    ):
        with subtests.test(given):
            runs = json.loads(quorum("history", *given.split(), "--json").stdout)
            assert [each["status"] for each in runs] == found
            listed = quorum("history", *given.split()).stdout
            assert ("There is no run in" in listed) is not bool(found)
            assert [each["id"] for each in runs if each["id"] not in listed] == []
    assert quorum("history", "-n", "1").stdout.endswith("… and earlier ones (-n)\n")


def test_trace_show(run: Trace, workplace: Path) -> None:
    assert "2 of 3 candidates agree" in quorum("trace", "show", "last").stdout
    found = json.loads(quorum("trace", "show", run.run_id[:8], "--json").stdout)
    assert found["answer"]["run_id"] == run.run_id
    assert found["events"][0]["kind"] == "schema"
    (workplace / "file").touch()
    assert quorum("trace", "show", "last", "--html", "file/page.html").exit_code == 2


def test_recipes_are_listed_with_their_papers() -> None:
    listed, about = quorum("recipes").stdout, quorum("recipes", "reforce").stdout
    assert [listed.count(f"\n  {word} ") for word in ("agents", "paper")] == [len(RECIPES)] * 2
    for part in ("prompts=house; the paper: paper", "presets (--preset NAME)\n  v1  "):
        assert part in about, about


def test_doctor_says_what_is_missing_and_is_content_with_what_works(
    database: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = quorum("doctor")
    assert result.exit_code == 2
    assert "✗ model" in result.stdout
    assert "✗ database" in result.stdout
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-here")
    monkeypatch.setenv("QUORUM_VOTE", "3")
    given = ("doctor", "--db", database, "--model", "offline")
    result = quorum(*given)
    assert result.exit_code == 0
    for said in (
        "opens read-only: yes; sqlite, 2 tables, 4 columns",
        "Did you mean QUORUM_VOTES?",
        "environment OPENAI_API_KEY",
    ):
        assert said in result.stdout
    assert "sk-hidden-here" not in result.stdout
    settings = result.stdout.partition("\nSettings\n")[2].splitlines()
    assert [line.split()[0] for line in settings[:-1]] == ["database", "models", "api_key"], "no defaults"
    listed = quorum(*given, "--settings").stdout.partition("\nSettings\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [*Settings.model_fields]
    assert not [path for path in workplace.iterdir() if path.name != "shop.db"], "nothing is left behind"
    assert "hidden: nothing; masked: " in quorum(*given, "--mask", "*.name").stdout


def test_doctor_names_what_would_keep_a_question_from_being_asked(
    database: str, workplace: Path, subtests: pytest.Subtests
) -> None:
    (workplace / "broken.db").write_bytes(b"no database at all" * 100)
    for given, name, said in (
        ("--db sqlite:///broken.db", "database", "broken.db"),
        ("--home shop.db/q", "traces", "cannot be written to shop.db/q"),
        ("--hide nowhere", "rights", "1 of the rules in `hide` and `mask` fit no table or column of shop."),
        ("--recipe ssev --preset v1", "recipe", "Recipe ssev has no preset 'v1'"),
        ("--recipe single --model-for planner=offline", "recipe", "never asks it"),
        ("--votes 1 --model scripted:a", "recipe", "cannot share 1 votes"),
    ):
        with subtests.test(given):
            where = () if "--db" in given else ("--db", database)
            failed = failed_checks(*where, "--model", "offline", *given.split())
            assert said in next(check["text"] for check in failed if check["name"] == name)


def test_no_check_of_doctor_ends_the_others(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a missing parent of a module, nor a fault of ours, nor a database without its driver."""

    def broken() -> Iterator[checks.Check]:
        yield checks.Check("environment", None, "all is well so far")
        raise TypeError("odd")

    monkeypatch.setitem(checks.EXTRAS, "bigquery", (("no_such_parent.module",), "BigQuery datasets"))
    monkeypatch.setattr(checks, "_strangers", broken)
    opened = list[str]()
    monkeypatch.setattr(checks, "connect_all", lambda urls: opened.extend(urls) or connect_all(urls))
    found = doctor("--db", "trino://me@h/c", "--db", database, "--model", "offline", code=2)
    assert len(opened) == len(set(opened)) == 2, "each database once"
    assert [check["name"] for check in found if check["ok"] is False] == ["environment", "database"]
    assert "by a fault of Quorum: TypeError: odd" in found[2]["text"]
    driver, shop = (check for check in found if check["name"] == "database")
    assert "pip install 'trino[sqlalchemy]'" in driver["text"]
    assert shop["text"].startswith(f"{database} opens read-only: yes; sqlite, 2 tables, 4 columns")
    assert {check["name"]: check["ok"] for check in found}["extra bigquery"] is None
    assert "extra xlsx" in found[-1]["name"]


def test_doctor_fails_for_an_extra_only_where_every_question_needs_it(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(checks.EXTRAS, "embeddings", (("faiss", "no_such_module"), "--retrieval hybrid"))
    monkeypatch.setattr(checks, "is_installed", lambda name: name != "faiss")
    given = ("--db", database, "--model", "offline")
    assert doctor(*given)
    assert doctor(*given, "--retrieval", "hybrid", "--embedding-model", "openai:m", code=2)


def test_doctor_says_who_asks_a_server_and_what_that_may_do(postgres: PostgresServer) -> None:
    name = postgres.new_database("CREATE TABLE t (x int)")
    found = doctor("--db", f"{postgres.admin_url}/{name}", "--model", "offline")
    accounts = [check for check in found if check["name"] == "account"]
    assert [check["ok"] for check in accounts] == [True, None]
    assert "is a superuser" in accounts[1]["text"]
    assert "may only SELECT" in accounts[1]["hint"]
    reader = "DROP ROLE IF EXISTS pure; CREATE ROLE pure LOGIN PASSWORD 'pass'; GRANT SELECT ON t TO pure"
    postgres.execute(reader, name)
    url = f"postgresql://pure:pass@127.0.0.1:{postgres.port}/{name}"
    result = quorum("doctor", "--db", url, "--model", "offline")
    assert "asks as pure and may do nothing but read" in result.stdout
    assert "pure:pass" not in result.stdout


def test_doctor_looks_at_models_and_endpoint_whatever_the_key(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of single roles, too; a key that no header can hold is a finding."""
    url, given = "http://127.0.0.1:9/v1", ("--model-for", "judge=openai:m", "--model-for", "linking=nobody:x")
    for key, status, said in (
        ("sk-hidden", 0, f"{url} cannot be reached"),
        ("sk-\n2", 0, f"{url} cannot be reached"),
        ("sk-…", 0, "characters that no key has"),
        ("sk-hidden", 401, "refuses the key"),
        ("sk-hidden", 200, "answers"),
    ):
        get = Mock(return_value=httpx.Response(status))
        with monkeypatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", key)
            if status:
                patch.setattr(httpx, "get", get)
            found = doctor("--db", database, "--model", "offline", *given, "--base-url", url, code=2)
        endpoint = next(check for check in found if check["name"] == "endpoint")
        assert (endpoint["ok"], said in endpoint["text"]) == (status == 200, True)
        assert {check["name"] for check in found if check["ok"] is False} >= {"model nobody:x"}
        assert "sk-" not in json.dumps(found)
        sent = {"headers": {"Authorization": f"Bearer {key}"}, "timeout": ANY}
        assert get.mock_calls == [call(f"{url}/models", **sent)] * bool(status)


def doctor(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """The checks; the command ends with that code."""
    result = quorum("doctor", *arguments, "--json")
    assert result.exit_code == code, result.output
    return list(json.loads(result.stdout)["checks"])


def failed_checks(*arguments: str) -> list[dict[str, Any]]:
    """The checks that say that no question could be asked; the command says so, too."""
    return [check for check in doctor(*arguments, code=2) if check["ok"] is False]


@pytest.mark.heavy
def test_doctor_and_ask_say_the_same_of_what_is_left_out(workplace: Path) -> None:
    """Both speak of the database and of the documents."""
    for name, content in {
        "data/customers.csv": b"id,name\n1,Ann\n",
        "data/broken.parquet": b"PAR1",
        "docs/terms.rst": b"a loyal customer buys thrice",
        "docs/schema.yml": b"models: [{name: customers, columns: [{name: id, description: the key}]}]",
        "docs/old.docx": b"PK",
    }.items():
        (workplace / name).parent.mkdir(exist_ok=True)
        (workplace / name).write_bytes(content)
    given = ("--db", "data", "--docs", "docs", "--model", "offline")
    asked = ("ask", "How many customers are there?", *given)
    about = [check for check in doctor(*given) if check["name"] in ("database", "documents")]
    warned = [check["text"] for check in about if check["ok"] is None]
    assert [text.partition(" ")[0] for text in warned] == ["broken.parquet", "Left"]
    assert "docs: 2 read, 14 words" in [check["text"] for check in about]
    answer = json.loads(quorum(*asked, "--json").stdout)
    assert answer["warnings"] == [warned[0], *(f"Documents: {text}" for text in warned[1:])]
    assert answer["rows"] == [[1]]
    again = quorum(*asked, "--csv").stderr
    assert [sentence in again for sentence in warned] == [False, True], "of the database once"
    (workplace / "data" / "broken.parquet").write_bytes(b"PAR1PAR1")
    assert "broken.parquet" in quorum(*asked, "--csv").stderr
    for name in ("terms.rst", "schema.yml"):
        (workplace / "docs" / name).unlink()
    result, (failed,) = quorum(*asked), failed_checks(*given)
    assert (result.exit_code, failed["name"]) == (2, "documents")
    assert failed["text"].partition("docs has ")[2] in " ".join(result.stderr.split())
