"""Several ``quorum serve`` over one home and one PostgreSQL: how many questions, and what kills cost.

First each number of processes by itself, then three of which ten are killed at random moments and started
again. The model takes ``--latency`` seconds a call and counts its calls. ``cpu`` is that of the servers and
all that they started, a question; ``MB`` the largest server's with its children; ``links`` the most
connections to PostgreSQL at once. ``again`` are replies that were under way at a kill, and asked for again.

    python -m tests.benchmarks.bench_scaling [--questions 300] [--kills 10] [--latency 0.25] [--recipe recap]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from tests.evals.simulated import make_suite
from tests.servers.fleet import Fleet, outcome, paid
from tests.servers.postgres_server import PostgresServer, running_postgres
from tests.servers.slow_server import SlowServer


class Watch(threading.Thread):
    """Looks at the servers and PostgreSQL until it is told to stop."""

    def __init__(self, fleet: Fleet, postgres: PostgresServer, database: str) -> None:
        super().__init__()
        self.fleet, self.postgres, self.database = fleet, postgres, database
        self.over, self.memory, self.links = threading.Event(), 0, 0
        self.cpu = dict[int, float]()

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.links = max(self.links, len(self.postgres.sessions(self.database)))
            for process in self.fleet.processes:
                self.memory = max(self.memory, self._look(process.pid) if process else 0)

    def _look(self, pid: int) -> int:
        """Note the CPU seconds of a server and its children; their memory in bytes."""
        memory = 0
        try:
            server = psutil.Process(pid)
            for each in (server, *server.children(recursive=True)):
                times = each.cpu_times()
                self.cpu[each.pid] = times.user + times.system
                memory += each.memory_full_info().uss
        except psutil.Error:  # killed
            return 0
        return memory


def kill(fleet: Fleet, kills: int, over: threading.Event) -> None:
    """Kill a process at random moments, and start it again."""
    chance = random.Random(7)
    for _ in range(kills):
        if over.wait(chance.uniform(1.0, 3.0)):
            print("all were answered before the last kill")
            return
        number = chance.randrange(len(fleet.ports))
        fleet.signal(number, signal.SIGKILL)
        fleet.start(number)
        fleet.wait(number)


def main(given: argparse.Namespace) -> None:
    with (
        running_postgres() as postgres,
        SlowServer(latency=given.latency) as model,
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        suite = make_suite(folder, given.questions, 1)
        texts, db = [each.question for each in suite.questions], [suite.questions[0].url]
        found = list[tuple[dict[str, Any], dict[str, Any]]]()
        print("servers kills      s   q/s cpu ms    MB links again resumed")
        for count, kills in ((1, 0), (2, 0), (3, 0), (3, given.kills)):
            database = postgres.new_database()
            before = model.counts().served
            about = (db, model.url, f"{postgres.admin_url}/{database}", "--recipe", given.recipe)
            with Fleet(count, folder / f"{count}-{kills}", *about, seconds=given.lease) as fleet:
                watch = Watch(fleet, postgres, database)
                killing = threading.Thread(target=kill, args=(fleet, kills, watch.over))
                watch.start(), killing.start()
                start = time.perf_counter()
                bodies = asyncio.run(fleet.ask_all(texts))
                wall = time.perf_counter() - start
                watch.over.set(), watch.join(), killing.join()
            runs = fleet.runs()
            resumed = sum(sum(event["kind"] == "begun" for event in run.events()) > 1 for run in runs)
            calls = {run.run_id: paid(run) for run in runs}
            billed = sum(n for each in calls.values() for key, n in each.items() if key[0] == "model_call")
            found.append(({id: outcome(body) for id, body in bodies.items()}, calls))
            print(
                f"{count:>7} {kills:>5} {wall:>6.1f} {len(texts) / wall:>5.1f} "
                f"{1000 * sum(watch.cpu.values()) / len(texts):>6.0f} {watch.memory / 2**20:>5.0f} "
                f"{watch.links:>5} "
                f"{model.counts().served - before - billed:>5} {resumed:>7}",
                flush=True,
            )
        (calm, once), (killed, paid_then) = found[0], found[-1]
        same = sum(calm[id] == killed[id] for id in calm)
        billed_once = sum(once[id] == paid_then[id] for id in once)
        print(f"as undisturbed: the answers of {same} of {len(calm)}, the calls and queries of {billed_once}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--latency", type=float, default=0.25)
    parser.add_argument("--lease", type=float, default=3.0)
    parser.add_argument("--recipe", default="recap")
    main(parser.parse_args())
