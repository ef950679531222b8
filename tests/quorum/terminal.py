"""A user at a terminal, who types a line whenever the program waits for one."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


def hear_ctrl_c() -> None:
    """Obey Ctrl-C, which the children of a shell's background job ignore; the suite may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal(
    arguments: list[str], keys: list[str], cwd: Path, root: Path, *, prompt: str = "(Enter: A): "
) -> tuple[int, str, str]:
    """Run ``quorum`` on a pseudo-terminal, typing a line whenever it waits at ``prompt``; exit code, screen,
    output."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(root), "OPENAI_API_KEY": "k", "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "quorum", *arguments],
        cwd=cwd, env=environment, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    os.close(theirs)
    screen, typed, deadline = "", 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.2)
        try:
            screen += os.read(ours, 65536).decode(errors="replace") if ready else ""
        except OSError:  # the other end is closed
            break
        if typed < len(keys) and screen.count(prompt) > typed:
            os.write(ours, keys[typed].encode())
            typed += 1
    output = process.stdout.read().decode()
    process.stdout.close()
    os.close(ours)
    return process.wait(20), screen, output
