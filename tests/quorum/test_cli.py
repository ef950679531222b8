"""The command line: exit codes, what goes to standard output, what errors say."""

from __future__ import annotations

import gc
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from quorum import checks
from quorum.cli import COMMANDS, cli, main
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.tools.garbage import YOUNG
from tests.servers.postgres_server import PostgresServer


def quorum(*arguments: str, given: str | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def database(workplace: Path) -> str:
    import sqlite3

    connection = sqlite3.connect(workplace / "shop.db")
    connection.execute('CREATE TABLE "order ""x""" (id INTEGER PRIMARY KEY, naïve TEXT)')
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("INSERT INTO customers VALUES (1, 'Ann')")
    connection.commit()
    connection.close()
    return "sqlite:///shop.db"


def test_help_lists_every_command_with_its_own_words() -> None:
    listing = quorum("--help").stdout
    for name, words in COMMANDS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.get_short_help_str(200) == words
        assert name in listing
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
guard "SELECT 1"
guard "SELECT 1" --dialect cobol
guard --file missing.jsonl
guard --file list.jsonl "SELECT 1"
schema show
schema show nothing-there
schema graph cobol://host/db
trace show last
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


@pytest.mark.parametrize(
    ("given", "ways"),
    [
        ("--db sample", "--model openai:gpt-4.1|QUORUM_MODELS|quorum.toml|--model offline|demonstration"),
        ("--model offline", "--db sqlite:///shop.db|QUORUM_DATABASE|quorum.toml"),
    ],
)
def test_what_is_not_configured_is_said_with_three_ways_to_do_it(given: str, ways: str) -> None:
    """The offline model is never taken unasked."""
    result = quorum("ask", "How many?", *given.split(), "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["kind"] == "ConfigurationError"
    for way in ways.split("|"):
        assert way in result.stderr


def test_json_after_the_end_of_options_is_an_argument() -> None:
    assert quorum("guard", "--dialect", "cobol", "--", "--json").stdout == ""


def test_what_an_error_quotes_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(*_: object) -> None:
        raise ConfigurationError("the endpoint says \x1b[2J\x9b31m\u202e")

    monkeypatch.setattr("quorum.graph.runs.RunFolder.open", hostile)
    for arguments in (["trace", "show", "last"], ["trace", "show", "last", "--json"]):
        result = quorum(*arguments)
        assert result.exit_code == 2
        assert not set(result.output) & set("\x1b\x9b\u202e")


def in_a_process(root: Path, encoding: str, *arguments: str) -> bytes:
    """Standard output of a command on a terminal of that encoding."""
    command = [sys.executable, "-m", "quorum", *arguments]
    env = os.environ | {"PYTHONPATH": str(root), "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.heavy
def test_a_terminal_that_is_not_utf_8_gets_every_text(database: str, run: Trace, root: Path) -> None:
    assert b"na\\xefve" in in_a_process(root, "koi8-r", "schema", "show", database)
    assert "naïve".encode() in in_a_process(root, "koi8-r", "schema", "show", database, "--json")
    assert run.run_id.encode() in in_a_process(root, "ascii", "trace", "show", "last", "--full")


def piped_into_head(root: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose reader leaves after the first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quorum", *arguments],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        said = process.stderr.read().decode()
    return process.wait(60), said


@pytest.mark.heavy
def test_a_reader_that_leaves_early_is_no_failure(workplace: Path, run: Trace, root: Path) -> None:
    line = json.dumps({"dialect": "sqlite", "sql": "SELECT 1"})
    (workplace / "list.jsonl").write_text("\n".join([line] * 5_000))
    assert piped_into_head(root, "guard", "--file", "list.jsonl") == (0, "")
    assert piped_into_head(root, "trace", "show", "last", "--full") == (0, "")


def test_guard_passes_a_read_and_refuses_a_write() -> None:
    assert quorum("guard", "--dialect", "sqlite", "SELECT 1").exit_code == 0
    refused = quorum("guard", "--dialect", "sqlite", "DROP TABLE t")
    assert (refused.exit_code, refused.stdout.startswith("refused: ")) == (1, True)
    piped = quorum("guard", "--dialect", "duckdb", "-", "--json", given="DELETE FROM t")
    assert (piped.exit_code, json.loads(piped.stdout)["verdict"]) == (1, "refused")


def test_guard_names_the_nearest_names_of_the_database(database: str) -> None:
    result = quorum("guard", "SELECT * FROM custmers", "--db", database)
    assert result.exit_code == 1
    assert "the schema says: There is no table custmers." in result.stdout
    assert "Did you mean: customers" in result.stdout
    found = json.loads(quorum("guard", "SELECT nme FROM customers", "--db", database, "--json").stdout)
    assert (found["verdict"], "Did you mean: name" in found["error"]) == ("pass", True)
    assert quorum("guard", "SELECT name FROM customers", "--db", database).exit_code == 0


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


def test_schema_refresh_reads_the_database_that_it_names(database: str) -> None:
    result = quorum("schema", "refresh", database)
    assert (result.exit_code, result.stdout.partition(",")[0]) == (0, "shop: 2 tables")


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
    text = quorum("schema", "show", database).stdout
    assert "customers" in text
    assert "naïve" in text
    catalog = json.loads(quorum("schema", "show", database, "--json").stdout)
    assert sorted(table["name"] for table in catalog["tables"]) == ["customers", 'order "x"']


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", 2),
        ("-n 1", 1),
        ("RATING average", 1),
        ("average price", 0),
        ("--since 2026-11-20", 2),
        ("--since 1m", 2),
        ("--since 2999-01-01T12:00", 0),
        ("--db sqlite:///tickets.db", 1),
        ("--db other.db", 0),
        ("--home empty", 0),
    ],
)
def test_the_history_finds_runs(run: Trace, workplace: Path, given: str, found: int) -> None:
    meta = {"question": "How many?", "options": {"database": [f"{workplace}/tickets.db"]}}
    Trace.create(workplace / ".quorum", "20991231-later", meta=meta).close()
    runs = json.loads(quorum("history", *given.split(), "--json").stdout)
    assert len(runs) == found
    listed = quorum("history", *given.split()).stdout
    assert ("There is no run in" in listed) is (found == 0)
    assert [each["id"] for each in runs if each["id"] not in listed] == []
    if found == 2:
        assert [each["status"] for each in runs] == ["unfinished", "answered"]
        assert quorum("history", "-n", "1").stdout.endswith("… and earlier ones (-n)\n")


def test_since_is_a_time() -> None:
    for wrong in ("soon", "2026-13-01", "2y", "999999w"):
        result = quorum("history", "--since", wrong)
        assert (result.exit_code, "is no time; write 2026-11-20, or 2d" in result.output) == (2, True)


def test_trace_show(run: Trace, workplace: Path) -> None:
    assert "2 of 3 candidates agree" in quorum("trace", "show", "last").stdout
    found = json.loads(quorum("trace", "show", run.run_id[:8], "--json").stdout)
    assert found["answer"]["run_id"] == run.run_id
    assert found["events"][0]["kind"] == "schema"
    assert quorum("trace", "show", "last", "--html", "page.html").exit_code == 0
    page = (workplace / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert run.run_id in page
    assert quorum("trace", "show", "last", "--html", "page.html/folder.html").exit_code == 2


def test_recipes_are_listed_with_their_papers() -> None:
    assert "recap" in quorum("recipes").stdout
    recipes = json.loads(quorum("recipes", "--json").stdout)
    assert [r["name"] for r in recipes if r["name"] == "recap"]
    assert all(r["summary"] and r["paper"] and r["agents"] for r in recipes)


def test_doctor_says_what_is_missing_and_is_content_with_what_works(
    database: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = quorum("doctor")
    assert result.exit_code == 2
    assert "✗ model" in result.stdout
    assert "✗ database" in result.stdout
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-here")
    monkeypatch.setenv("QUORUM_VOTE", "3")
    result = quorum("doctor", "--db", database, "--model", "offline")
    assert result.exit_code == 0
    assert "opens read-only: yes; sqlite, 2 tables, 4 columns" in result.stdout
    assert "Did you mean QUORUM_VOTES?" in result.stdout
    assert "environment OPENAI_API_KEY" in result.stdout
    assert "sk-hidden-here" not in result.stdout
    assert not [path for path in workplace.iterdir() if path.name != "shop.db"], "nothing is left behind"
    (workplace / "broken.db").write_bytes(b"no database at all" * 100)
    (broken,) = failed_checks("--db", "sqlite:///broken.db", "--model", "offline")
    assert (broken["name"], "broken.db" in broken["text"]) == ("database", True)
    for home in ("shop.db/q", "/proc/quorum"):  # a file; a folder that even root cannot write to
        if Path(home).parent.exists():
            (traces,) = failed_checks("--db", database, "--model", "offline", "--home", home)
            assert traces["text"].startswith(f"cannot be written to {home}")


def test_doctor_says_what_rules_withhold_and_which_fit_nothing(database: str) -> None:
    given = ("doctor", "--db", database, "--model", "offline", "--mask", "*.name")
    assert "rights" in (found := quorum(*given)).stdout, found.stdout
    assert "hidden: nothing; masked: " in found.stdout
    (wrong,) = failed_checks(*given[1:], "--hide", "nowhere")
    assert wrong["name"] == "rights"
    assert wrong["text"].startswith("1 of the rules in `hide` and `mask` fit no table or column of shop.")


def test_no_check_of_doctor_ends_the_others(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a missing parent of a module, nor a fault of ours, nor a database without its driver."""

    def broken() -> Iterator[checks.Check]:
        yield checks.Check("environment", None, "all is well so far")
        raise TypeError("odd")

    monkeypatch.setitem(checks.EXTRAS, "bigquery", (("no_such_parent.module",), "BigQuery datasets"))
    monkeypatch.setattr(checks, "_strangers", broken)
    given = ("--db", "trino://me@h/c", "--db", database, "--model", "offline", "--json")
    result = quorum("doctor", *given)
    found = json.loads(result.stdout)["checks"]
    assert result.exit_code == 2
    assert [check["name"] for check in found if check["ok"] is False] == ["environment", "database"]
    assert "by a fault of Quorum: TypeError: odd" in found[2]["text"]
    driver, shop = (check for check in found if check["name"] == "database")
    assert "pip install 'trino[sqlalchemy]'" in driver["text"]
    assert shop["text"].startswith(f"{database} opens read-only: yes")
    assert {check["name"]: check["ok"] for check in found}["extra bigquery"] is None
    assert "extra xlsx" in found[-1]["name"]


def test_doctor_opens_each_of_several_databases_once_and_judges_it_by_itself(
    database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quorum.tools.databases.postgres.connector import PostgresConnector
    from quorum.tools.databases.sqlite.connector import SqliteConnector

    opened = []

    def counted(of: type[Any]) -> Any:
        real = of.open

        async def open(connector: Any) -> None:
            opened.append(connector.name)
            await real(connector)

        return open

    for kind in (PostgresConnector, SqliteConnector):
        monkeypatch.setattr(kind, "open", counted(kind))
    name = postgres.new_database("CREATE TABLE t (x int)")
    given = ("--db", database, "--db", f"{postgres.admin_url}/{name}", "--model", "offline")
    found = checks_of(*given, "--max-bytes", "1GiB")
    assert sorted(opened) == sorted(["shop", name])
    costs = [(check["ok"], check["text"]) for check in found if check["name"] == "costs"]
    assert [ok for ok, _ in costs] == [None] * 4
    for (_, told), (_, unkept), name_of, engine in (
        (costs[0], costs[1], "shop", "sqlite"),
        (costs[2], costs[3], name, "postgres"),
    ):
        assert told.startswith(f"what queries of {name_of} would read is not told")
        assert unkept.startswith(f"max_bytes has no effect here: {engine}")
    (together,) = [check for check in found if check["name"] == "databases"]
    assert together["text"].endswith(f"joined by DuckDB as {', '.join(sorted(['shop', name]))}")


def test_doctor_shows_its_checks_first_then_the_settings_that_are_not_defaults(database: str) -> None:
    given = ("doctor", "--db", database, "--model", "offline")
    checked, _, settings = quorum(*given).stdout.partition("\nSettings\n")
    assert checked.startswith("Checks\n")
    assert [line.split()[0] for line in settings.splitlines()[:-1]] == ["database", "models"]
    assert settings.splitlines()[-1].endswith("other settings have their default (--settings lists all)")
    listed = quorum(*given, "--settings").stdout.partition("\nSettings\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [*Settings.model_fields]


def test_doctor_fails_for_an_extra_only_where_every_question_needs_it(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(checks.EXTRAS, "embeddings", (("faiss", "no_such_module"), "--retrieval hybrid"))
    monkeypatch.setattr(checks, "is_installed", lambda name: name != "faiss")
    given = ("doctor", "--db", database, "--model", "offline", "--json")
    assert quorum(*given).exit_code == 0
    assert quorum(*given, "--retrieval", "hybrid", "--embedding-model", "openai:m").exit_code == 2


def test_doctor_says_who_asks_a_server_and_what_that_may_do(postgres: PostgresServer) -> None:
    name = postgres.new_database("CREATE TABLE t (x int)")
    result = quorum("doctor", "--db", f"{postgres.admin_url}/{name}", "--model", "offline", "--json")
    assert result.exit_code == 0
    accounts = [check for check in json.loads(result.stdout)["checks"] if check["name"] == "account"]
    assert [check["ok"] for check in accounts] == [True, None]
    assert "is a superuser" in accounts[1]["text"]
    assert "may only SELECT" in accounts[1]["hint"]
    reader = "DROP ROLE IF EXISTS pure; CREATE ROLE pure LOGIN PASSWORD 'pass'; GRANT SELECT ON t TO pure"
    postgres.execute(reader, name)
    url = f"postgresql://pure:pass@127.0.0.1:{postgres.port}/{name}"
    result = quorum("doctor", "--db", url, "--model", "offline")
    assert "asks as pure and may do nothing but read" in result.stdout
    assert "pure:pass" not in result.stdout


def test_doctor_says_which_promises_sqlalchemy_does_not_keep(postgres: PostgresServer) -> None:
    pytest.importorskip("sqlalchemy", reason="the extra quorum-sql[sqlalchemy] is not installed")
    place = postgres.admin_url.partition("://")[2].replace("@", ":p%40ss@")
    url = f"sqlalchemy+postgresql+psycopg://{place}/{postgres.new_database('CREATE TABLE t (x int)')}"
    result = quorum("doctor", "--db", url, "--model", "offline")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "opens read-only: yes; postgres, 1 table" in said
    assert "no limit on bytes read is enforced" in said
    assert "may do nothing but read" not in said, "what it may do is not looked at"
    assert "p%40ss" not in said


class _Endpoint(BaseHTTPRequestHandler):
    status = 200
    keys: list[str | None] = []  # noqa: RUF012 (shared on purpose: the server makes its own handlers)

    def do_GET(self) -> None:
        type(self).keys.append(self.headers["Authorization"])
        self.send_response(type(self).status if self.path == "/v1/models" else 404)
        self.end_headers()
        self.wfile.write(b'{"data": []}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(("status", "ok", "words"), [(200, True, "answers"), (401, False, "refuses the key")])
def test_doctor_asks_an_endpoint_for_its_models(
    database: str, monkeypatch: pytest.MonkeyPatch, status: int, ok: bool, words: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-here")
    _Endpoint.status, _Endpoint.keys = status, []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        result = quorum("doctor", "--db", database, "--model", "openai:m", "--base-url", url, "--json")
        server.shutdown()
    report = json.loads(result.stdout)
    endpoint = next(check for check in report["checks"] if check["name"] == "endpoint")
    assert (endpoint["ok"], report["ok"], words in endpoint["text"]) == (ok, ok, True)
    assert _Endpoint.keys == ["Bearer sk-hidden-here"]
    assert "sk-hidden-here" not in result.stdout


@pytest.mark.parametrize("key", ["sk-hidden", "sk-…", "sk-\n2"])
def test_doctor_looks_at_models_and_endpoint_whatever_the_key(
    database: str, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Those of single roles, too; a key that no header can hold is a finding."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    given = ("--model-for", "judge=openai:m", "--model-for", "linking=nobody:x")
    url = "http://127.0.0.1:9/v1"
    failed = failed_checks("--db", database, "--model", "offline", *given, "--base-url", url)
    assert [check["name"] for check in failed] == ["model nobody:x", "endpoint"]
    if key == "sk-hidden":
        assert f"{url} cannot be reached" in failed[-1]["text"]
    assert "sk-" not in json.dumps(failed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--recipe", "ssev", "--preset", "v1"], "Recipe ssev has no preset 'v1'"),
        (["--recipe", "team", "--switch", "nope=1"], "Recipe team has no switch 'nope'"),
        (["--recipe", "single", "--model-for", "planner=offline"], "never asks it"),
        (["--votes", "1", "--model", "openai:m"], "cannot share 1 votes"),
    ],
)
def test_doctor_holds_together_what_a_question_holds_together(
    database: str, given: list[str], said: str
) -> None:
    failed = failed_checks("--db", database, "--model", "offline", *given)
    (found,) = [check for check in failed if check["name"] == "recipe"]
    assert said in found["text"]


def test_an_unwritable_home_is_a_clear_error(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workplace / "file").write_text("")
    monkeypatch.setenv("QUORUM_HOME", "file/home")
    for arguments in (["ask", "q", "--db", "sample", "--model", "offline"], ["schema", "show", "sample"]):
        result = quorum(*arguments)
        assert result.exit_code == 2
        assert "Cannot write " in result.stderr
        assert "QUORUM_HOME" in result.stderr


def checks_of(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(quorum("doctor", *arguments, "--json").stdout)["checks"]
    return found


def failed_checks(*arguments: str) -> list[dict[str, Any]]:
    """The checks that say that no question could be asked; the command says so, too."""
    result = quorum("doctor", *arguments, "--json")
    assert result.exit_code == 2
    return [check for check in json.loads(result.stdout)["checks"] if check["ok"] is False]


@pytest.mark.heavy
def test_doctor_and_ask_say_the_same_of_what_is_left_out(workplace: Path) -> None:
    """Both speak of the database and of the documents."""
    data, docs = workplace / "data", workplace / "docs"
    data.mkdir()
    docs.mkdir()
    (data / "customers.csv").write_text("id,name\n1,Ann\n")
    (data / "broken.parquet").write_bytes(b"PAR1")
    (docs / "terms.rst").write_text("a loyal customer buys thrice")
    (docs / "schema.yml").write_text(
        "models: [{name: customers, columns: [{name: id, description: the key}]}]"
    )
    (docs / "old.docx").write_bytes(b"PK")
    given = ("--db", "data", "--docs", "docs", "--model", "offline")
    checks = checks_of(*given)
    warned = [
        check["text"]
        for check in checks
        if check["ok"] is None and check["name"] in ("database", "documents")
    ]
    assert [text.partition(" ")[0] for text in warned] == ["broken.parquet", "Left"]
    assert "docs: 2 read, 14 words" in next(check["text"] for check in checks if check["name"] == "documents")
    asked = quorum("ask", "How many customers are there?", *given, "--json")
    answer = json.loads(asked.stdout)
    assert answer["warnings"] == [warned[0], *(f"Documents: {text}" for text in warned[1:])]
    assert answer["rows"] == [[1]]
    again = quorum("ask", "How many customers are there?", *given, "--csv").stderr
    assert [sentence in again for sentence in warned] == [False, True], "of the database once"
    (data / "broken.parquet").write_bytes(b"PAR1PAR1")
    assert "broken.parquet" in quorum("ask", "How many customers are there?", *given, "--csv").stderr
    (docs / "terms.rst").unlink()
    (docs / "schema.yml").unlink()
    asked, checks = quorum("ask", "How many?", *given), checks_of(*given)
    (failed,) = [check for check in checks if check["name"] == "documents"]
    assert (asked.exit_code, failed["ok"]) == (2, False)
    assert failed["text"].partition("docs has ")[2] in " ".join(asked.stderr.split())


@pytest.mark.heavy
def test_a_schema_of_data_files_is_shown(workplace: Path) -> None:
    (workplace / "data").mkdir()
    (workplace / "data" / "orders.json").write_text('[{"id": 1, "total": 2.5}]')
    for source in ("data", "data/orders.json", "files:///data"):
        shown = quorum("schema", "show", source)
        assert "table main.orders (1 rows) -- orders.json" in shown.stdout, shown.stderr
    (workplace / "visits" / "day=1").mkdir(parents=True)
    (workplace / "visits" / "day=1" / "a.csv").write_text("n\n1\n")
    assert "day BIGINT" in quorum("schema", "show", "visits").stdout
