"""The HTTP server under load: questions a second a core, memory a session, and growth over many questions.

A server in a process of its own answers with a simulated model of ``--latency`` seconds a call; this
process asks ``--questions`` questions, ``--concurrency`` at once, and reads the events of each. CPU is
that of the server alone, without its databases' processes, and so is memory, once garbage is collected.
Then questions go to ``--sessions`` more databases, one each.

    python -m tests.benchmarks.bench_serve [--questions 2000] [--concurrency 50] [--latency 0.2]
                                           [--sessions 20]
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import resource
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from tests.benchmarks.common import arguments


def serve(folder: Path, sessions: int, latency: float, line: Connection) -> None:
    """Serve the databases; the first message is the port, each that comes is answered by what was used."""
    import psutil
    import uvicorn

    from quorum import Settings
    from quorum.commands.serve import hold_no_free_memory
    from quorum.serve.http import make_app
    from quorum.serve.service import Service
    from tests.evals.simulated import make_suite, slow_model

    hold_no_free_memory()
    suite = make_suite(folder, sessions + 1, sessions + 1)
    urls: dict[str, str | list[str]] = {question.database: str(question.url) for question in suite.questions}
    settings = Settings(models=["simulated"], recipe="single", home=folder / "home")

    async def main() -> None:
        service = Service(settings, urls, {"simulated": slow_model(latency)})
        config = uvicorn.Config(make_app(service), port=0, log_level="error", lifespan="off")
        server, socket = uvicorn.Server(config), config.bind_socket()
        line.send(socket.getsockname()[1])
        serving = asyncio.ensure_future(server.serve(sockets=[socket]))
        while await asyncio.to_thread(line.recv):
            used = resource.getrusage(resource.RUSAGE_SELF)
            gc.collect()
            line.send((used.ru_utime + used.ru_stime, psutil.Process().memory_info().rss / 2**20))
        server.should_exit = True
        await serving
        await service.aclose()

    asyncio.run(main())


async def measure(given: Any, port: int, line: Connection) -> None:
    """Print a line for each part of the load."""
    gate = asyncio.Semaphore(given.concurrency)

    def used() -> Any:
        line.send(True)
        return line.recv()

    async def ask(database: str, number: int) -> None:
        """Ask a question and read its events to the end; it must be answered."""
        text = f"How many orders over {number % 1900} euros did each city place?"
        async with gate:
            begun = await client.post("/v1/questions", json={"question": text, "database": database})
            begun.raise_for_status()
            events = await client.get(begun.json()["links"]["events"])
        assert '"status": "answered"' in events.text.rpartition("event: end")[2], events.text[-300:]

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
        await asyncio.gather(*(ask("shop0", n) for n in range(given.concurrency)))
        print("questions  wall s  cpu ms q/s/core     MB")
        for part in range(4):
            (cpu, _), start, count = used(), time.perf_counter(), given.questions // 4
            await asyncio.gather(*(ask("shop0", part * count + n) for n in range(count)))
            wall, (now, memory) = time.perf_counter() - start, used()
            each = (now - cpu) / count
            print(f"{(part + 1) * count:>9} {wall:>7.1f} {1000 * each:>7.1f} {1 / each:>8.1f} {memory:>6.0f}")
        await asyncio.gather(*(ask(f"shop{n}", n) for n in range(1, given.sessions + 1)))
        print(f"{given.sessions} more sessions: {(used()[1] - memory) / given.sessions:.2f} MB each")


def main() -> None:
    """Start the server, measure, end it."""
    given = arguments(__doc__, questions=2000, concurrency=50, latency=0.2, sessions=20)
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as name:
        about = (Path(name), given.sessions, given.latency, theirs)
        server = multiprocessing.get_context("spawn").Process(target=serve, args=about)
        server.start()
        asyncio.run(measure(given, ours.recv(), ours))
        ours.send(False)
        server.join()


if __name__ == "__main__":
    main()
