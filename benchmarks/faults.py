"""Commands that are killed while they work, and started again: do they leave what an undisturbed run leaves?

    python benchmarks/faults.py [KILLS] [SEED]

Each command runs once undisturbed. Then, 20 times or KILLS times, it is killed at a moment drawn uniformly
from the time in which it works, started again in the same folder, and every file it leaves is compared byte
for byte. Every third kill is a SIGTERM, the others are SIGKILL, and only the process that was started is
killed: what it has started itself must notice. Ends with 1 if a file differs or anything is left behind.
About twenty minutes on one core.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COMMAND = (sys.executable, "-m", "tightaudit")
PRINTED = "printed"
GRACE_SECONDS = 20
"""How long processes may take to notice that the one which started them is gone."""


@dataclass(frozen=True)
class Job:
    """A command, run in a folder of its own."""

    name: str
    command: tuple[str, ...]
    sign: str | None = None
    """A file that shows that work has begun; None if there is none before the end."""
    interrupted: int = 130
    """The exit code after SIGTERM."""


def jobs(scores: Path) -> Iterator[Job]:
    """The commands; those that need scores to audit take these."""
    yield Job("reproduce", (*COMMAND, "reproduce", "p-values", "--out", "."), "cells/*.json")
    size = ("--steps", "200", "--canaries", "500")
    dpsgd = (*COMMAND, "dpsgd", "--epsilon", "8", *size, "--json", "--out", ".")
    yield Job("dpsgd", dpsgd, "*.checkpoint")
    # A script of its own: SIGTERM ends it as it ends every other.
    two = (sys.executable, str(EXAMPLES / "two_process_training.py"), ".")
    yield Job("two processes", two, "last.json", interrupted=-signal.SIGTERM)
    claim = ("--delta", "1e-5", "--claim", "gaussian(mu=1)")
    yield Job("audit", (*COMMAND, "audit", str(scores), *claim, "--html", "audit.html", "--json"))


@dataclass
class Count:
    """What came of the kills of one command."""

    kills: int = 0
    working: int = 0
    differences: int = 0
    parts: int = 0
    processes: int = 0
    codes: int = 0


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"{kills} kills of each command, seed {seed}", flush=True)
    rng, counts = random.Random(seed), {}
    with tempfile.TemporaryDirectory() as place:
        scores = Path(place) / "scores.csv"
        write_scores(scores)
        for job in jobs(scores):
            counts[job.name] = disturbed(job, Path(place), kills, rng)
    headings = ("kills", "while working", "files that differ", ".part left", "processes left", "other codes")
    print(f"\n{'command':15}" + "".join(f"{heading:>19}" for heading in headings))
    for name, count in counts.items():
        print(f"{name:15}" + "".join(f"{number:19}" for number in vars(count).values()))
    found = sum(
        count.differences + count.parts + count.processes + count.codes + (kills - count.working)
        for count in counts.values()
    )
    sys.exit(found != 0)


def write_scores(path: Path) -> None:
    """Scores of the Gaussian mechanism, as many as take an audit some seconds."""
    rng = np.random.default_rng(1)
    members = rng.random(200_000) < 0.5
    scores = members + rng.standard_normal(len(members))
    rows = (f"{score},{int(member)}\n" for score, member in zip(scores, members, strict=True))
    path.write_text("score,member\n" + "".join(rows), encoding="utf-8")


def disturbed(job: Job, place: Path, kills: int, rng: random.Random) -> Count:
    """Kill a command so often while it works, and finish it each time."""
    straight, folder, count = place / "straight", place / "killed", Count()
    low, high = working_seconds(job, straight)
    expected = contents(straight)
    print(f"\n{job.name}: works for {high - low:.1f} s, leaves {len(expected)} files", flush=True)
    while count.working < kills and count.kills < 3 * kills:
        number = signal.SIGTERM if count.kills % 3 == 2 else signal.SIGKILL
        count.kills += 1
        moment = rng.uniform(low, high)
        working, code, left = killed(job, folder, moment - (low if job.sign else 0), number)
        count.working += working
        count.processes += left
        if working and number == signal.SIGTERM:
            count.codes += code != job.interrupted
            count.parts += parts_in(folder)
        with started(job, folder) as again:
            code = again.wait()
        count.codes += code != 0
        count.processes += left_processes(again.pid)
        found = contents(folder)
        different = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
        count.differences += len(different)
        count.parts += parts_in(folder)
        ended = f"killed by {number.name} at {moment:.2f} s" if working else "ended before it was killed"
        print(f"  {ended}; differs: {', '.join(different) or 'nothing'}", flush=True)
        shutil.rmtree(folder)
    shutil.rmtree(straight)
    return count


def started(job: Job, folder: Path) -> subprocess.Popen[bytes]:
    """The command in a session of its own, so that all its processes can be told from others."""
    folder.mkdir(exist_ok=True)
    with (folder / PRINTED).open("wb") as printed:
        return subprocess.Popen(
            job.command,
            cwd=folder,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "TIGHTAUDIT_CHECKPOINT_SECONDS": "0.2", "OMP_NUM_THREADS": "1"},
        )


def working_seconds(job: Job, folder: Path) -> tuple[float, float]:
    """Run undisturbed; seconds from the start in which it works. Without a sign, all but the first third."""
    begun, since = 0.0, time.monotonic()
    with started(job, folder) as running:
        while running.poll() is None:
            if not begun and job.sign and any(folder.glob(job.sign)):
                begun = time.monotonic() - since
            time.sleep(0.005)
    if running.returncode:
        sys.exit(f"{job.name} failed when it was left alone")
    whole = time.monotonic() - since
    return begun or whole / 3, 0.97 * whole


def killed(job: Job, folder: Path, wait: float, number: signal.Signals) -> tuple[bool, int, int]:
    """Start, and kill so many seconds after work has begun.

    Returns whether it was still at work, its exit code, and how many processes it left.
    """
    with started(job, folder) as running:
        while job.sign and not any(folder.glob(job.sign)) and running.poll() is None:
            time.sleep(0.005)
        time.sleep(wait)
        working = running.poll() is None
        running.send_signal(number)
        code = running.wait()
    # One that had done its work when it was asked to stop ends as if nobody had asked.
    return working and code != 0, code, left_processes(running.pid)


def left_processes(session: int) -> int:
    """How many processes of a session are alive when they have had time to end; ends those that are."""
    until = time.monotonic() + GRACE_SECONDS
    while (left := processes_of(session)) and time.monotonic() < until:
        time.sleep(0.1)
    for process in left:
        os.kill(process, signal.SIGKILL)
    return len(left)


def processes_of(session: int) -> list[int]:
    """Those of a session, from Linux's list of processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of, *_ = entry.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        if int(of) == session and state != "Z":
            found.append(int(entry.parent.name))
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def parts_in(folder: Path) -> int:
    """How many files that were never finished are there."""
    return sum(1 for path in folder.rglob("*.part") if path.is_file())


if __name__ == "__main__":
    main()
