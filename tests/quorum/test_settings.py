"""Settings: which source wins, what each value's source is called, what errors say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quorum.cli import cli
from quorum.commands import eval_run
from quorum.commands.ask import command
from quorum.commands.options import Flag
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings, variables_of
from quorum.tools.urls import anchored, mask_url, url_secrets


def test_each_source_wins_over_the_next(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workplace / "quorum.toml").write_text("votes = 4\nmax_calls = 4\nmax_rows = 4\nseed = 4")
    (workplace / ".env").write_text("QUORUM_VOTES=3\nQUORUM_MAX_CALLS=3\nQUORUM_MAX_ROWS=3\nUNRELATED=1\n")
    monkeypatch.setenv("QUORUM_VOTES", "2")
    monkeypatch.setenv("QUORUM_MAX_CALLS", "2")
    settings = Settings(votes=1)
    assert (settings.votes, settings.max_calls, settings.max_rows, settings.seed) == (1, 2, 3, 4)
    sources = settings.provenance()
    assert sources["votes"] == "flag"
    assert sources["max_calls"] == "environment QUORUM_MAX_CALLS"
    assert sources["max_rows"] == ".env QUORUM_MAX_ROWS"
    assert sources["seed"] == "quorum.toml"
    assert sources["recipe"] == "default"
    assert set(sources) == set(Settings.model_fields)


def test_files_are_found_from_a_folder_below(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['database = ["sqlite:///data/shop.db", "b.db"]', 'documents = "docs"', 'home = "/elsewhere"']
    (workplace / "quorum.toml").write_text("\n".join(lines))
    (workplace / "sub").mkdir()
    monkeypatch.chdir(workplace / "sub")
    settings = Settings()
    assert settings.database == [f"sqlite:///{workplace}/data/shop.db", str(workplace / "b.db")]
    assert (settings.documents, settings.home) == (workplace / "docs", Path("/elsewhere"))
    monkeypatch.setenv("HOME", str(workplace))
    monkeypatch.setenv("QUORUM_HOME", "~/x")
    assert Settings().home == workplace / "x"


def test_openai_names_count_where_quorum_names_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://openai")
    monkeypatch.setenv("API_KEY", "sk-stranger")
    monkeypatch.setenv("QUORUM_BASE_URL", "http://quorum")
    monkeypatch.setenv("QUORUM_MODELS", "")
    settings, sources = Settings(), Settings().provenance()
    assert (settings.key, settings.base_url, settings.models) == ("sk-openai", "http://quorum", [])
    named = {"api_key": "environment OPENAI_API_KEY", "base_url": "environment QUORUM_BASE_URL"}
    assert sources.items() >= (named | {"models": "default"}).items()


def test_lists_times_and_sizes_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = ["a.db", "postgresql://u@h/db?schema=a,b", "mysql://h/x?schema=y", "sample"]
    written: dict[str, tuple[str, Any]] = {
        "models": ("openai:a, openai:b,,", ["openai:a", "openai:b"]),
        "database": (",".join(urls), urls),
        "deadline": ("1h 5m", 3900),
        "query_timeout": ("500ms", 0.5),
        "result_bytes": ("10 MiB", 10 * 2**20),
        "prices": ('{"m": {"input": 1, "output": 2}}', {"m": {"input": 1.0, "output": 2.0}}),
    }
    for name, (text, _) in written.items():
        monkeypatch.setenv(f"QUORUM_{name.upper()}", text)
    assert {name: getattr(Settings(), name) for name in written} == {n: v for n, (_, v) in written.items()}
    given = Settings(switches=("syntax=false", "max_plans=2", 'gold_tables=["a"]', "mode=fast"))
    assert given.switches == {"syntax": False, "max_plans": 2, "gold_tables": ["a"], "mode": "fast"}
    for read, values in {"on": [True, "true", "1"], "off": [False, "No"], "always": ["Always"]}.items():
        assert {Settings(clarify=given).clarify for given in values} == {read}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("QUORUM_CLARIFY", "maybe", r"clarify = 'maybe' \(environment QUORUM_CLARIFY\): .*'always'"),
        *(("deadline", text, "deadline") for text in ("soon", "5x", "-5", "0", "1.2.3s", "s", "")),
        ("strategy", "loudest", r"strategy = 'loudest' \(flag\): .*sql_majority"),
        ("switches", ("syntax",), "'syntax' is not NAME=VALUE"),
        *(("approve", text, "never, always, costly nor a size") for text in ("sometimes", "-1", "10 XB")),
        ("home", "~no-such-user/x", r"home = '~no-such-user/x' \(flag\)"),
        ("max_cals", 1, r"no option 'max_cals'. Did you mean 'max_calls'\?"),
        ("QUORUM_VOTES", "three", r"votes = 'three' \(environment QUORUM_VOTES\)"),
        ("QUORUM_PRICES", '{"m": {"inptu": 1, "output": 2}}', "QUORUM_PRICES.*price of m is not understood"),
        ("quorum.toml", "vote = 3", "Did you mean 'votes'"),
        ("quorum.toml", "votes = ", r"quorum\.toml cannot be read"),
        (
            "quorum.toml",
            "documents = 3\nhome = []",
            r"documents = 3 \(quorum.toml\): .* home = \[\] \(quorum",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_source(
    name: str, value: Any, said: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {}
    if name == "quorum.toml":
        (workplace / name).write_text(value)
    elif name.startswith("QUORUM_"):
        monkeypatch.setenv(name, value)
    else:
        flags = {name: value}
    with pytest.raises(ConfigurationError, match=said):
        Settings(**flags)


def test_secrets_are_not_shown(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    settings = Settings(
        database="postgresql://u:p%40ss@h/db?password=other", base_url="http://me:pw-of-me@h/v1"
    )
    assert settings.secrets() == ["sk-secret", "other", "p%40ss", "p@ss", "pw-of-me"]
    for secret in settings.secrets():
        assert secret not in repr(settings)
        assert secret not in str(settings.shown())
    (workplace / "quorum.toml").write_text('api_key = ["sk-in-a-list"]')
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    assert "sk-in-a-list" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_masked_url(subtests: pytest.Subtests) -> None:
    for url, shown in (
        ("postgresql://u:p@h/db", "postgresql://u:[redacted]@h/db"),
        ("postgresql://u:p@ss@h/db", "postgresql://u:[redacted]@h/db"),
        ("snowflake://u@h/db?token=abc&role=r", "snowflake://u@h/db?token=[redacted]&role=r"),
        ("http://h/v1?api-key=QS&api-version=1", "http://h/v1?api-key=[redacted]&api-version=1"),
        (
            "http://h/v1?x-functions-key=a&code=b&accessToken=c",
            "http://h/v1?x-functions-key=[redacted]&code=[redacted]&accessToken=[redacted]",
        ),
        ("postgresql://h/db?sslkey=/x&options=y", "postgresql://h/db?sslkey=/x&options=y"),
        ("u:p@h/v1", "u:[redacted]@h/v1"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("no url: @", "no url: @"),
    ):
        with subtests.test(url=url):
            assert mask_url(url) == shown


def test_secrets_of_a_url_as_written_and_decoded() -> None:
    url = "http://h/v1?subscription-key=a%2Fb+c&role=r&SIG=d"
    assert url_secrets(url) == ["a%2Fb%2Bc", "a%2Fb+c", "a/b c", "a/b+c", "d"]


def test_settings_and_options_of_a_run_have_the_same_defaults() -> None:
    from quorum.graph.options import RunOptions

    asked = Settings(database="sample", models=["offline"]).run_options()
    home = Path(".quorum").absolute()
    assert asked.as_dict() == RunOptions(home=home, kb=home / "kb", explored=home / "explored").as_dict()


def test_where_a_database_lies_no_longer_depends_on_the_folder(subtests: pytest.Subtests) -> None:
    for given, made in (
        ("sqlite:///data/a b.db", "sqlite:////at/here%20now/data/a b.db"),
        ("files:///data?skip=2", "files:////at/here%20now/data?skip=2"),
        ("shop.db", "/at/here now/shop.db"),
        ("~/shop.db", "~/shop.db"),
        ("sqlite:////abs/shop.db", "sqlite:////abs/shop.db"),
        ("sample", "sample"),
    ):
        with subtests.test(given=given):
            assert anchored(given, Path("/at/here now")) == made
            assert anchored(made, Path("/elsewhere")) == made


def test_the_example_file_sets_every_option_and_nothing_else(root: Path, workplace: Path) -> None:
    lines = (root / ".env.example").read_text().splitlines()
    pairs = [line.removeprefix("# ") for line in lines if "=" in line and not line.startswith("# LANGSMITH")]
    known = {name: variable for name in Settings.model_fields for variable in variables_of(name)}
    assert {pair.partition("=")[0] for pair in pairs} == set(known.values())
    (workplace / ".env").write_text("\n".join(pairs))
    empty = {"QUORUM_EMBEDDING_MODEL"}
    for name, source in Settings().provenance().items():
        assert source == ("default" if known[name] in empty else f".env {known[name]}")


def test_every_option_has_a_flag_of_each_command_whose_help_says_the_default() -> None:
    for each, own in ((command, {"api_key"}), (eval_run.command, {"api_key", "clarify", "database"})):
        flags = {parameter.name for parameter in each.params if isinstance(parameter, Flag)}
        assert flags == set(Settings.model_fields) - own
    shown = " ".join(CliRunner().invoke(cli, ["ask", "--help"]).stdout.split())
    for name in ("votes", "strategy", "retrieval", "home"):
        option, default = Settings.declared()[name], Settings.model_fields[name].default
        assert f"{option.explanation.replace('`', '')} [{option.shown(default)}]" in shown
