"""The page in a browser, on a live server: each thing that it does, narrow and wide, dark and light."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quorum.serve.keys import add_key
from tests.browser import Browser, Tab
from tests.quorum.roles import role_of
from tests.quorum.serve.conftest import serving
from tests.servers.chat_server import Answer, ChatServer, Request, say, tokens
from tests.servers.process import missing

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

POISON = "<img src=x onerror=\"document.title='taken'\">"
QUESTION = f"How many orders came from each region {POISON}?"
FOLLOW_UP = "and those with a note?"
BECAME = f"How many orders with a note came from each region, {POISON}?"
LONG = "average_length_of_a_column_that_somebody_named_at_great_length"
BY_REGION = f"SELECT region, COUNT(*) AS n, AVG(LENGTH(note)) AS {LONG} FROM orders GROUP BY region"
WITH_NOTE = "SELECT region, COUNT(note) AS n FROM orders GROUP BY region"
EACH = "SELECT id, region, note FROM orders ORDER BY id"
MEANT = f"Counts only orders with a note, {POISON}."
MANY = """import("/page/api.js").then(api => Promise.all([...Array(31).keys()].map(async n => {
  const { id } = await api.post("/v1/questions", { question: `How many orders are there? ${n}` });
  await api.get(`/v1/questions/${id}`, { wait: 30 });
})))"""
LOOKS = [(420, False), (420, True), (1300, False), (1300, True)]


class Model:
    """A model's endpoint that answers by role; a question that says ``slowly`` waits until ``go``."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, request: Request) -> Answer:
        *_, asked = re.findall(r"<question>(.*?)</question>", request.text, re.DOTALL) or [""]
        if "slowly" in asked:
            self.go.wait(60)
        sql = EACH if "List" in asked else WITH_NOTE if "with a note came" in asked else BY_REGION
        replies: dict[str, Any] = {
            "sql_writer": {"reasoning": "", "sql": sql, "summary": f"It is {POISON}.", "readings": [MEANT]},
            "reading_writer": {"answered": "Counts all.", "readings": [{"meaning": MEANT, "sql": WITH_NOTE}]},
            "question_rewriter": {"ask": "question", "question": BECAME},
            "reviser": {"explanation": "It stands.", "sql": None},
        }
        if sql != BY_REGION:
            replies["sql_writer"]["readings"] = []
        return say(json.dumps(replies[role_of(request)]), usage=tokens(1200, 40, 1024))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[str]:
    """A server of a poisoned database and the sample, whose model is ``model``."""
    home = tmp_path_factory.mktemp("poisoned")
    with sqlite3.connect(home / "shop.db") as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT, amount TEXT, note TEXT)")
        regions = ["north", "South ", "south", "N/A", POISON]
        rows = [(n, regions[n % 5], f"${n}.50", POISON if n % 3 else None) for n in range(900)]
        shop.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        name = POISON.replace('"', '""')
        shop.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, "{name}" TEXT)')
    shop.close()
    with ChatServer(model) as server:
        flags = ("--db", "shop.db", "--db", "sample", "--model", "openai:gpt-4.1", "--base-url", server.url)
        with serving(home, *flags, OPENAI_API_KEY="sk-none") as (address, _):
            yield address


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The one command of the README; gives the address that it opened in the browser."""
    home = tmp_path_factory.mktemp("sample")
    opener = home / "open.sh"
    opener.write_text(f'#!/bin/sh\necho "$1" > "{home}/opened"\n')
    opener.chmod(0o755)
    flags = ("--db", "sample", "--model", "offline", "--open")
    with serving(home, *flags, BROWSER=f"{opener} %s") as (address, _):
        yield address


def control(label: str, within: str = "body") -> str:
    """The expression that presses the last visible control of that label."""
    controls = f"[...document.querySelectorAll('{within} :is(button, a, summary, label)')]"
    return f"{controls}.findLast(it => it.textContent.trim() === {label!r} && it.checkVisibility()).click()"


def click(tab: Tab, label: str, within: str = "body") -> None:
    tab.run(control(label, within))


def ask(tab: Tab, text: str, until: str = ".answer") -> None:
    """Type a text, press Enter and wait for what comes of it: a new article that shows ``until``."""
    tab.wait("document.querySelector('.welcome, article')")
    before = tab.run("document.querySelectorAll('article').length")
    tab.run("document.querySelector('#question').focus()")
    tab.write(text)
    tab.press("Enter")
    tab.wait(f"document.querySelectorAll('article')[{before}]?.querySelector('{until}')")


def anew(tab: Tab) -> None:
    """Leave the conversation."""
    click(tab, "New question")
    tab.wait("document.querySelector('.welcome')")


SERVERS = Path(__file__).parents[3] / ".venv" / "servers"
AXE = [*SERVERS.glob("lib/*/site-packages/axe_playwright_python/axe.min.js")]
"""The script of axe-core, which judges each screen that ``fits`` is asked about."""
WIDE = ("div.scroll", "span.", "label.unseen", "p.now")
FINDINGS = """
axe.run().then(all => all.violations.filter(each => ["serious", "critical"].includes(each.impact)).map(
  each => [each.id, each.help, each.nodes.map(node => node.html).join()]))
"""


def fits(tab: Tab, width: int = 1200, *expected: str) -> None:
    """Hold what every view has to keep: no message, no other host, no sideways scrolling, no finding."""
    visit, origin = tab.look(), tab.url.partition("/page")[0]
    assert [said for said in visit.messages if not any(part in said for part in expected)] == []
    assert [url for url in visit.requests if not url.startswith((origin, f"blob:{origin}"))] == []
    assert visit.width == width
    assert [cut for cut in visit.cut if not cut.startswith(WIDE)] == []
    assert tab.run("document.title") == "Quorum"
    if AXE:
        tab.run(f"{AXE[0].read_text()}; 0")
        for wide, dark in LOOKS:
            tab.looks(wide, dark=dark)
            assert tab.run(FINDINGS) == [], (wide, dark)
        tab.looks(width)


def test_axe_judges_the_screens_of_these_tests() -> None:
    if not AXE:
        missing("axe-core is not installed (make .venv/.servers): no screen is judged")


@pytest.mark.parametrize("width", [420, 1300])
def test_the_first_answer_is_one_command_and_one_press_away(
    browser: Browser, sample: str, width: int
) -> None:
    with browser.tab(sample, width=width) as tab:
        tab.wait("document.querySelector('.welcome li button')")
        fits(tab, width)
        tab.run("document.querySelector('.welcome li button').click()")
        tab.wait("document.querySelector('.answer .drawing svg')")
        text = tab.run("document.body.innerText")
        for part in ("demonstration", "not rated", "SELECT", "steps", "model call", "Is this right?"):
            assert part in text
        assert tab.run("document.querySelector('.answer a').href").endswith("/trace")
        fits(tab, width)
        anew(tab)
        ask(tab, "How many orders did each channel bring?", ".answer .drawing svg")
        shapes = "document.querySelectorAll('.drawing svg .mark-{0} path').length"
        for label, mark, number in (("Line", "line", 1), ("Points", "symbol", 3), ("Bars", "rect", 3)):
            click(tab, label)
            tab.wait(f"{shapes.format(mark)} == {number}")
        tab.run(f"{control('Line')}; {control('Points')}; {control('None')}")  # what comes late is not drawn
        tab.run("fetch(`${[...performance.getEntriesByType('resource')].at(-1).name}`).then(it => it.text())")
        tab.wait("!document.querySelector('.drawing')")


@pytest.mark.parametrize("width", [420, 1300])
def test_poisoned_names_values_and_questions_stay_text_everywhere(
    browser: Browser, poisoned: str, width: int
) -> None:
    with browser.tab(poisoned, width=width) as tab:
        ask(tab, QUESTION, ".asks")
        fits(tab, width)
        assert tab.run("document.activeElement.textContent") == "Which answer is meant?"
        click(tab, "I mean this", ".reading")
        tab.wait("document.querySelector('.answer .drawing svg')")
        tab.run("document.querySelector('.log').open = true")
        fits(tab, width)
        for panel in ("schema", "history"):
            click(tab, panel.title(), "header")
            tab.wait(f"document.querySelector('#{panel} .found :is(details, li)')")
            tab.run("document.querySelectorAll('#schema details').forEach(each => each.open = true)")
            assert POISON in tab.run(f"document.querySelector('#{panel}').innerText")
            fits(tab, width)
            click(tab, panel.title(), "header")
        assert tab.run("document.querySelectorAll('img').length") == 0
        assert tab.run("document.querySelector('article').innerText").count(POISON) > 4


def test_what_else_was_meant_is_a_press_away(browser: Browser, poisoned: str) -> None:
    with browser.tab(poisoned) as tab:
        tab.run("document.querySelector('#clarify').click()")
        ask(tab, QUESTION)
        text = tab.run("document.querySelector('.answer').innerText")
        for part in ("Read as: Counts all.", f"If you meant: {MEANT}", f"It is {POISON}.", "doubtful"):
            assert part in text
        assert tab.run("document.querySelector('ul.warn').previousSibling.textContent") == "The data shows"
        click(tab, "I meant this", ".reading")
        tab.wait("document.activeElement.textContent == 'Answer as you meant it'")
        assert "no model was asked" in tab.run("document.querySelector('.answer').innerText")
        region = "document.querySelector('.answer tbody tr:first-child').innerText.split('\\t')"
        assert tab.run("document.querySelectorAll('.answer tbody tr').length") == 5
        assert tab.run(f"{region}.length") == 2, "the columns of the query that was meant"
        assert tab.run("document.querySelectorAll('article').length") == 1
        fits(tab)
        click(tab, "Back to the first answer")
        tab.wait("document.querySelector('.answer .reading')")
        click(tab, "I meant this", ".reading")
        click(tab, "Ask it anew")
        tab.wait("document.querySelectorAll('.answer').length == 2")
        fits(tab)
        said = tab.run("document.querySelector('article:last-of-type .asked').textContent")
        assert said == f"{QUESTION}\n\nTo be precise: {MEANT}"


def test_a_conversation_says_how_it_understood_and_can_be_corrected(browser: Browser, poisoned: str) -> None:
    with browser.tab(poisoned) as tab:
        tab.run("document.querySelector('#clarify').click()")
        ask(tab, QUESTION)
        ask(tab, FOLLOW_UP, ".answer .drawing svg")
        last = "document.querySelector('article:last-of-type')"
        assert tab.run(f"{last}.querySelector('.asked').textContent") == FOLLOW_UP
        assert f"Understood as: {BECAME}" in tab.run(f"{last}.innerText")
        fits(tab)
        address = tab.run("location.hash")
        click(tab, "Correct this")
        assert tab.run("[document.activeElement.id, document.activeElement.value]") == ["question", BECAME]
        anew(tab)
        assert "follow-up" not in tab.run("document.querySelector('#question').placeholder")
        tab.run(f"location.hash = '{address}'")
        tab.wait("document.querySelectorAll('.answer .drawing svg').length == 2")
        asked = tab.run("[...document.querySelectorAll('.asked')].map(each => each.textContent)")
        assert asked == [QUESTION, FOLLOW_UP], "an old answer has its conversation's other turns"


def test_rows_are_sorted_copied_and_saved(browser: Browser, poisoned: str, tmp_path: Path) -> None:
    with browser.tab(poisoned) as tab:
        ask(tab, "List the orders")
        first = "[...document.querySelectorAll('.answer tbody tr:first-child td')].map(td => td.textContent)"
        assert tab.run(first) == ["0", "north", "NULL"]
        assert "the first 20 of 900 rows" in tab.run("document.body.innerText")
        click(tab, "id", "th")
        tab.wait("document.querySelector('th').ariaSort == 'descending'")
        assert "the first 20" not in tab.run("document.querySelector('.under').innerText")
        assert tab.run(first)[0] == "899"  # of all rows, not of the 20 that were shown
        click(tab, "region", "th")
        tab.wait("document.querySelectorAll('th')[1].ariaSort == 'ascending'")
        assert tab.run("document.querySelectorAll('.answer tbody tr').length") == 100
        click(tab, "Show more rows")
        tab.wait("document.querySelectorAll('.answer tbody tr').length == 200")
        tab.run("navigator.clipboard.writeText = async text => { window.copied = text; }; 0")
        click(tab, "Copy", ".under")
        tab.wait("[...document.querySelectorAll('button')].some(each => each.textContent == 'Copied')")
        lines = tab.run("window.copied").split("\n")
        assert (lines[0], len(lines), f"1\tSouth \t{POISON}" in lines) == ("id\tregion\tnote", 901, True)
        shown = "[...document.querySelectorAll('.answer tbody td:first-child')].map(td => td.textContent)"
        assert [line.split("\t")[0] for line in lines[1:201]] == tab.run(shown) != [*map(str, range(200))]
        run = tab.run("document.querySelector('article').dataset.run")
        for name, form in (("CSV", "csv"), ("Parquet", "parquet")):
            file = tab.download(control(name), tmp_path)
            assert file.name == f"{run}.{form}"
            rows = pq.read_table(file) if form == "parquet" else file.read_text().splitlines()[1:]
            assert len(rows) == 900
        fits(tab)


def test_a_query_is_edited_and_run_refused_and_kept_as_the_right_one(
    browser: Browser, poisoned: str, tmp_path: Path
) -> None:
    with browser.tab(poisoned, width=420) as tab:
        ask(tab, "List what is wrong")
        click(tab, "Edit and run")
        editor = "document.querySelector('.editor textarea')"
        for query, shown in (("DELETE FROM orders", "only pure reads"), ("SELECT nope FROM orders", "nope")):
            tab.run(f"{editor}.value = {query!r}; {editor}.focus()")
            tab.press("Enter", ctrl=True)
            tab.wait(f"document.querySelector('.out .fault')?.textContent.includes({shown!r})")
        tab.run(f"{editor}.value = 'SELECT 7 AS seven'")
        click(tab, "Run")
        tab.wait("document.querySelector('.out td')?.textContent == '7'")
        tab.run(f"{editor}.value = {EACH!r}")
        click(tab, "Run")
        tab.wait(
            "document.querySelector('.out .under')?.innerText.startsWith('the first 100 of 900 rows in ')"
        )
        click(tab, "Show more rows", ".out")
        tab.wait("document.querySelector('.out .under').innerText.startsWith('the first 200 of 900 rows')")
        click(tab, "id", ".out th")
        tab.run("navigator.clipboard.writeText = async text => { window.copied = text; }; 0")
        click(tab, "Copy", ".out .under")
        tab.wait("window.copied")
        lines = tab.run("window.copied").split("\n")
        assert (lines[0], lines[1].split("\t")[0], len(lines)) == ("id\tregion\tnote", "899", 901)
        file = tab.download(control("CSV", ".out"), tmp_path)
        rows = list(csv.reader(file.open(newline="")))
        assert (file.name, rows[2], len(rows)) == ("query.csv", ["898", "N/A", POISON], 901)
        tab.run(f"{editor}.value = {BY_REGION!r}")
        click(tab, "Run")
        tab.wait("document.querySelector('.out .drawing svg')")
        click(tab, "Close", ".editor")
        click(tab, "Wrong")
        tab.run(f"{editor}.value = 'SELECT COUNT(*) AS n FROM orders'; {editor}.focus()")
        tab.press("Enter", ctrl=True)
        tab.wait("document.querySelector('.out .keeping')")
        click(tab, "This is right: keep it")
        tab.wait("document.querySelector('.kept')")
        assert not tab.run("document.querySelector('.verdict > .row')")
        fits(tab, 420, "422")
        anew(tab)
        ask(tab, "List what is wrong")
        assert "verified" in tab.run("document.querySelector('article:last-of-type').innerText")


def test_a_question_is_stopped(browser: Browser, poisoned: str, model: Model) -> None:
    with browser.tab(poisoned) as tab:
        ask(tab, "List them slowly", ".steps li")
        click(tab, "Stop")
        tab.wait("document.querySelector('article .fault')?.textContent.startsWith('Stopped')")
        fits(tab)
        model.go.set()
        assert "follow-up" not in tab.run("document.querySelector('#question').placeholder")


def test_a_query_waits_for_a_yes(browser: Browser, poisoned: str) -> None:
    with browser.tab(poisoned) as tab:
        tab.wait("document.querySelector('.welcome')")
        asked = json.dumps({"question": "List all", "database": "shop", "approve": "always"})
        tab.run("import('/page/api.js').then(async api => { location.hash = '#run=' + (await "
                f"api.post('/v1/questions', {asked})).id; }})")  # fmt: skip
        tab.wait("document.querySelector('.asks')?.innerText.includes('May this query run?')")
        query = tab.run("document.querySelector('.asks pre').innerText")
        assert "SELECT id, region, note FROM orders" in query
        fits(tab)
        click(tab, "Yes to all of this question")
        tab.wait("document.querySelector('.answer td')")


def test_a_key_is_asked_for_and_stays_in_the_tab(browser: Browser, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.toml", "ann")
    flags = ("--db", "sample", "--model", "offline", "--keys", "keys.toml")
    with serving(tmp_path, *flags) as (address, _), browser.tab(address, width=420) as tab:
        key_asked = "document.querySelector('#key')"
        for given in ("qk_wrong", key):
            tab.wait(f"{key_asked}.open && document.activeElement.type == 'password'")
            fits(tab, 420, "401")
            tab.write(given)
            tab.press("Enter")
            tab.wait(f"!{key_asked}.open || {key_asked}.querySelector('.fault').textContent")
        ask(tab, "How many orders did each channel bring?", ".answer .drawing svg")
        assert tab.run("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 1, ""]
        file = tab.download(control("Every step (trace)"), tmp_path)
        assert "Every step" in file.read_text()
        fits(tab, 420, "401")


def test_a_right_answer_is_kept_and_found_in_the_history(browser: Browser, sample: str) -> None:
    with browser.tab(sample) as tab:
        ask(tab, "How many reviews are there?")
        click(tab, "Right")
        tab.write("All of them count.")
        click(tab, "Keep it")
        tab.wait("document.querySelector('.kept')")
        anew(tab)
        ask(tab, "How many reviews are there?")
        assert "verified" in tab.run("document.querySelector('article:last-of-type').innerText")
        anew(tab)
        ask(tab, "How many products are there?")
        click(tab, "History", "header")
        tab.wait("document.querySelectorAll('.runs a').length > 2")
        tab.write("MANY reviews")
        tab.wait("document.querySelectorAll('.runs a').length == 2")
        tab.run("document.querySelector('.runs a').click()")
        tab.wait("document.querySelector('.asked').textContent == 'How many reviews are there?'")
        tab.wait("document.querySelector('.answer')")
        tab.run(MANY)
        tab.run("const words = document.querySelector('#history input'); words.value = '';"
                "words.dispatchEvent(new Event('input'))")  # fmt: skip
        tab.wait("document.querySelectorAll('.runs a').length == 30")
        click(tab, "Earlier ones")
        tab.wait("document.querySelectorAll('.runs a').length > 30")
        click(tab, "Schema", "header")
        tab.wait("document.querySelector('#schema details')")
        tab.write("loyalty")
        tab.wait("document.querySelectorAll('#schema details').length < 8")
        fits(tab)


def test_by_keyboard_alone(browser: Browser, sample: str) -> None:
    with browser.tab(sample) as tab:
        tab.wait("document.querySelector('.welcome li button')")
        assert tab.run("document.activeElement.id") == "question"
        tab.write("How many orders did each channel bring?")
        tab.press("Enter")
        tab.wait("document.querySelector('.answer .drawing svg')")
        assert tab.run("document.querySelector('#live').textContent").startswith("Answer. not rated. 3 rows")
        stops = []
        for _ in range(60):
            tab.press("Tab", shift=True)
            stops.append(tab.run("document.activeElement.textContent.trim() || document.activeElement.id"))
            assert tab.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
            if stops[-1] == "Skip to the question":
                break
        for part in ("Wrong", "Right", "Edit and run", "CSV", "Copy", "channel", "History"):
            assert part in stops
        tab.press("Enter")
        assert tab.run("document.activeElement.id") == "question"


def test_a_stream_that_breaks_goes_on_where_it_was(browser: Browser, sample: str) -> None:
    with browser.tab(sample) as tab:
        ask(tab, "How many orders are there?")
        found = tab.run("""(async () => {
            const { events } = await import("/page/api.js");
            const real = window.fetch, asked = [], got = [];
            window.fetch = async (path, how) => {
                asked.push(how.headers["Last-Event-ID"]);
                const text = await (await real(path, how)).text();
                return new Response(asked.length > 1 ? text : text.slice(0, text.indexOf("id: 4") + 30));
            };
            const run = document.querySelector("article").dataset.run;
            const path = `/v1/questions/${run}/events`;
            for await (const step of events(path, new AbortController().signal)) got.push(step.id);
            window.fetch = real;
            return [asked, got];
        })()""")
        assert found[0] == ["0", "3"]
        assert found[1] == [str(n) for n in range(1, len(found[1]) + 1)]
