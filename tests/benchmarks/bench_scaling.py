"""Several ``quorum serve`` over one home and one PostgreSQL: their speed, what kills cost, what is held.

1. Questions of recipe ``recap`` by one, two and three processes; then by three of which ten are killed at
   random moments (SIGKILL) and started again. The model takes ``--latency`` seconds a call and counts its
   calls. ``CPU ms`` is that of the processes and all that they started, a question; ``MB`` the largest
   process's with its children (USS); ``links`` the most connections to PostgreSQL a process.
2. What the killed run says against the undisturbed one. It ends with status 1 if a question was lost or
   answered otherwise, or a finished step repeated.
3. The same for conversations of three turns, each turn sent to the next process.
4. Memory an open session (a database of its own each) and an open conversation, and rows' bytes left in
   PostgreSQL.

    python -m tests.benchmarks.bench_scaling [--questions 300] [--kills 10] [--talks 60] [--sessions 50]
"""

from __future__ import annotations

import asyncio
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from tests.benchmarks.common import arguments, spread
from tests.evals.simulated import make_suite
from tests.servers.fleet import Fleet, outcome, paid
from tests.servers.postgres_server import PostgresServer, running_postgres
from tests.servers.slow_server import SlowServer
from tests.waiting import wait_until

TURNS = ("How many orders over {} euros did each city place?", "And over ten more?", "And over ten more?")
_OWNED = "SELECT run FROM quorum_leases WHERE split_part(owner, ':', 2) = '{}' AND run NOT LIKE '%:talk'"


def memory(pid: int, cpu: dict[int, float] | None = None) -> int:
    """Return the bytes that a process and its children have for themselves; note their CPU seconds."""
    found = 0
    server = psutil.Process(pid)
    for each in (server, *server.children(recursive=True)):
        times = each.cpu_times()
        found += each.memory_full_info().uss
        if cpu is not None:
            cpu[each.pid] = times.user + times.system
    return found


class Watch(threading.Thread):
    """Looks at the processes and PostgreSQL until it is told to stop, and when killed runs go on."""

    def __init__(self, fleet: Fleet, postgres: PostgresServer, database: str) -> None:
        super().__init__(daemon=True)
        self.fleet, self.postgres, self.database = fleet, postgres, database
        self.over, self.memory, self.links = threading.Event(), 0, 0
        self.cpu, self.seconds = dict[int, float](), list[float]()
        self.waiting = dict[tuple[Path, float], int]()
        """Runs of killed processes, with the moment of the kill: how many events they had."""

    def run(self) -> None:
        looked = 0.0
        while not self.over.wait(0.02):
            for (events, killed), before in [*self.waiting.items()]:
                if _lines(events) > before:
                    self.seconds.append(time.monotonic() - killed)
                    del self.waiting[events, killed]
            if time.monotonic() - looked < 0.5:
                continue
            looked = time.monotonic()
            self.links = max(self.links, len(self.postgres.sessions(self.database)))
            for process in filter(None, self.fleet.processes):
                try:
                    self.memory = max(self.memory, memory(process.pid, self.cpu))
                except psutil.Error:  # killed
                    continue

    def kill(self, kills: int, questions: int) -> None:
        """Kill a process whenever a random number of questions is answered, and start it again."""
        chance, runs = random.Random(7), self.fleet.home / "runs"
        for wanted in sorted(chance.sample(range(1, questions * 9 // 10), kills)):
            wait_until(lambda least=wanted: len([*runs.glob("*/answer.json")]) >= least)  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, 0.3))
            number = chance.randrange(len(self.fleet.ports))
            process = self.fleet.processes[number]
            killed = time.monotonic()
            self.fleet.signal(number, signal.SIGKILL)
            for (run,) in self.postgres.execute(_OWNED.format(process.pid), self.database):
                folder = runs / run.partition(":")[0]
                if (folder / "run.json").exists() and not (folder / "answer.json").exists():
                    self.waiting[folder / "events.jsonl", killed] = _lines(folder / "events.jsonl")
            self.fleet.start(number)
            self.fleet.wait(number)


def _lines(events: Path) -> int:
    return events.read_bytes().count(b"\n") if events.exists() else 0


@dataclass
class Bench:
    """The servers that all fleets have in common."""

    folder: Path
    postgres: PostgresServer
    model: SlowServer

    def fleet(self, count: int, db: Sequence[str], database: str, recipe: str) -> Fleet:
        about = (db, self.model.url, f"{self.postgres.admin_url}/{database}", "--recipe", recipe)
        return Fleet(count, self.folder / database, *about)

    def ask(self, count: int, kills: int, talks: Sequence[Sequence[str]], db: Sequence[str]) -> Any:
        """Ask by so many processes, of which so many are killed, and print a line of the table.

        Returns:
            The outcomes by id, which runs were answered once, what each paid, calls asked ``again``, runs
            ``taken`` over, and the seconds that this took.
        """
        database, turns = self.postgres.new_database(), sum(map(len, talks))
        before = self.model.served()
        with self.fleet(count, db, database, "recap") as fleet:
            watch = Watch(fleet, self.postgres, database)
            killing = threading.Thread(target=watch.kill, args=(kills, turns), daemon=True)
            watch.start(), killing.start()
            start = time.perf_counter()
            bodies = asyncio.run(fleet.talk_all(talks))
            wall = time.perf_counter() - start
            killing.join()
            watch.over.set(), watch.join()
        runs = fleet.runs()
        kinds = {run.run_id: Counter(event["kind"] for event in run.events()) for run in runs}
        # a step that was cut short behind its event and before the answer's file is done again
        once = {id for id, each in kinds.items() if 1 <= each["answer"] <= max(1, each["begun"])}
        calls = {run.run_id: paid(run) for run in runs}
        billed = sum(n for each in calls.values() for key, n in each.items() if key[0] == "model_call")
        again = self.model.served() - before - billed
        print(
            f"{count:>9} {kills:>5} {wall:>6.1f} {turns / wall:>5.1f} "
            f"{1000 * sum(watch.cpu.values()) / turns:>7.0f} {watch.memory / 2**20:>5.0f} "
            f"{watch.links / count:>5.1f}",
            flush=True,
        )
        said = {id: outcome(body) if body["answer"] else body["status"] for id, body in bodies.items()}
        taken = sum(each["begun"] > 1 for each in kinds.values())
        about: dict[str, Any] = {"outcomes": said, "once": once, "paid": calls, "again": again}
        return SimpleNamespace(**about, taken=taken, seconds=watch.seconds)

    def slope(self, name: str, count: int, db: Sequence[str], ask: Any) -> None:
        """Print the memory that each of so many costs, which ``ask`` opens in turn in one process."""
        database = self.postgres.new_database()
        with self.fleet(1, db, database, "single") as fleet:
            process = fleet.processes[0]
            sizes = list[int]()
            for number in range(count):
                asyncio.run(ask(fleet, number))
                sizes.append(memory(process.pid))
            links = len(self.postgres.sessions(database))
        late = range(count // 5, count)  # what the first ones load is the process's
        line = statistics.linear_regression(late, [sizes[n] for n in late])
        tables = "checkpoints", "checkpoint_blobs", "checkpoint_writes"
        sums = " + ".join(f"(SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {each} t)" for each in tables)
        ((left,),) = self.postgres.execute(f"SELECT {sums}", database)
        print(f"{name}: {line.slope / 2**20:.2f} MB each ({sizes[0] / 2**20:.0f} MB with the first,", end=" ")
        print(f"{sizes[-1] / 2**20:.0f} with {count}); {links} connections;", end=" ")
        print(f"{int(left) / 1024 / count:.1f} kB each left in PostgreSQL", flush=True)


def compared(calm: Any, killed: Any) -> bool:
    """Print what the kills changed; return True if that is nothing."""
    ids = calm.outcomes.keys()
    once = len(killed.once & ids)
    differing = sum(calm.outcomes[id] != killed.outcomes[id] for id in ids)
    repeated = sum((killed.paid[id] - calm.paid[id]).total() for id in ids)
    missing = sum((calm.paid[id] - killed.paid[id]).total() for id in ids)
    asked = sum(n for each in calm.paid.values() for key, n in each.items() if key[0] == "model_call")
    print(f"answered once: {once} of {len(ids)}; differing answers: {differing}")
    print(f"runs taken over: {killed.taken}")
    print(f"replies repeated, in flight at a kill: {killed.again} of {asked}")
    print(f"finished calls and queries repeated: {repeated}, missing: {missing}")
    if killed.seconds:
        print(f"take-over seconds ({len(killed.seconds)}): {spread(killed.seconds)}")
    return once == len(ids) and not differing and not repeated and not missing


async def _ask(fleet: Fleet, asked: dict[str, Any]) -> None:
    import httpx

    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{fleet.url(0)}/v1/questions", json=asked)
        assert reply.status_code == 202, reply.text
        await fleet.follow(client, asked["id"], 0)


def main(given: Any) -> int:
    with (
        running_postgres() as postgres,
        SlowServer(latency=given.latency) as model,
        tempfile.TemporaryDirectory() as name,
    ):
        bench, suite = Bench(Path(name), postgres, model), make_suite(Path(name), given.questions, 1)
        db = [suite.questions[0].url]
        texts = [[each.question] for each in suite.questions]
        talks = [[turn.format(number) for turn in TURNS] for number in range(given.talks)]
        print("processes kills      s   q/s  CPU ms    MB links")
        found = [
            bench.ask(count, kills, texts, db) for count, kills in ((1, 0), (2, 0), (3, 0), (3, given.kills))
        ]
        right = compared(found[0], found[-1])
        print("conversations:")
        talked = [bench.ask(count, kills, talks, db) for count, kills in ((3, 0), (3, given.kills // 2))]
        right = compared(*talked) and right
        (folder := Path(name) / "many").mkdir()
        shops = make_suite(folder, given.sessions, given.sessions).questions
        many = [f"s{number}={each.url}" for number, each in enumerate(shops)]

        async def session(fleet: Fleet, number: int) -> None:
            await _ask(fleet, {"question": texts[0][0], "id": f"s{number}", "database": f"s{number}"})

        async def talk(fleet: Fleet, number: int) -> None:
            for turn, text in enumerate(talks[number % len(talks)]):
                await _ask(fleet, {"question": text, "id": f"t{number}-{turn}", "session": f"t{number}"})

        bench.slope("open sessions", given.sessions, many, session)
        bench.slope("conversations", given.sessions, db, talk)
    return not right


if __name__ == "__main__":
    counts: dict[str, Any] = {"questions": 300, "kills": 10, "talks": 60, "sessions": 50}
    sys.exit(main(arguments(__doc__, **counts, latency=0.25)))
