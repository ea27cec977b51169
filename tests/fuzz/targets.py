"""What is fuzzed: each target makes a case from a generator and runs it, within what `judging` allows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tests.fuzz import mutator
from tests.fuzz.command_lines import COMMANDS, call_text, claim, command_line, family, mechanism, strata
from tests.fuzz.files import content, header, put
from tests.fuzz.judging import Violation, call, command, guarded, process

from tightaudit.claims.base import CLAIMS
from tightaudit.claims.text import as_claim, as_family
from tightaudit.cli.options import MethodOptions
from tightaudit.evidence.reading.columns import Columns
from tightaudit.evidence.reading.files import FORMATS, read_run
from tightaudit.evidence.run import known_from_header
from tightaudit.paper.figures.base_pairs import BasePairCell
from tightaudit.paper.figures.parts.store import CellStore
from tightaudit.paper.stored import keep_bytes, kept_bytes
from tightaudit.planning.release import as_release
from tightaudit.simulate.mechanisms.base import as_mechanism
from tightaudit.support.notation import parse


@dataclass(frozen=True)
class Target:
    """One way in, and how many of a thousand cases take it."""

    name: str
    share: int
    run: Callable[[Random], str]
    """Runs a case, says how it ended, and raises a Violation."""

    def try_case(self, seed: int) -> str:
        """How one case ends, the same each time."""
        with guarded():
            return self.run(Random(f"{self.name} {seed}"))


def _reader(kind: str) -> Callable[[Random], str]:
    def run(random: Random) -> str:
        path = put(random, kind)
        names = [random.choice((None, None, None, "score", "id", mutator.text(random))) for _ in range(4)]
        columns = Columns(*names) if mutator.seldom(random, 0.2) else None
        members = put(random, random.choice(tuple(FORMATS)), "bits") if mutator.seldom(random, 0.15) else None
        return call(lambda: read_run(path, members=members, columns=columns))

    return run


def _saved_run(random: Random) -> str:
    if mutator.seldom(random, 0.5):
        text = header(random)
        return call(lambda: known_from_header(text, "run.npz"))
    path, again = put(random, "run"), Path("again.npz")

    def work() -> None:
        run = read_run(path)
        run.save(again)
        same = read_run(again)
        if not np.array_equal(same.scores, run.scores) or str(same.claim) != str(run.claim):
            raise Violation("a run that was saved is read as another")

    return call(work)


def _claim_text(random: Random) -> str:
    examples = [CLAIMS[name].example for name in CLAIMS]
    text = random.choice((call_text(random, examples), claim(random), mutator.text(random)))

    def work() -> None:
        parse("claim", text)
        if str(as_claim(str(as_claim(text)))) != str(as_claim(text)):
            raise Violation(f"{text!r} is read as another claim than its own text")

    return call(work)


def _family_text(random: Random) -> str:
    text = random.choice((family(random), mutator.text(random)))

    def work() -> None:
        if str(as_family(str(as_family(text)))) != str(as_family(text)):
            raise Violation(f"{text!r} is read as another family than its own text")

    return call(work)


def _other_texts(random: Random) -> str:
    match random.randrange(3):
        case 0:
            text = mechanism(random)
            return call(lambda: as_mechanism(text))
        case 1:
            text = random.choice((mutator.number, mutator.text))(random)
            return call(lambda: as_release(text))
        case _:
            text = strata(random)
            return call(lambda: MethodOptions("rank-weighted", strata=text).configured())


def _damaged(random: Random, path: Path) -> bool:
    """Whether a file was really changed."""
    whole = path.read_bytes()
    path.write_bytes(b"" if mutator.seldom(random, 0.05) else mutator.changed_bytes(random, whole))
    return path.read_bytes() != whole


def _cells(random: Random) -> str:
    store, cell = CellStore(Path("cells")), BasePairCell("gaussian(mu=1)", points=3)
    result = {"x": [random.random(), mutator.text(random).encode("utf-8", "replace").decode()]}
    store.put(cell, result)
    _damaged(random, next(Path("cells").iterdir()))

    def work() -> None:
        if store.get(cell) not in (None, result):
            raise Violation("a damaged cell is taken for a result")

    return call(work)


def _kept(random: Random) -> str:
    path, whole = Path("training.checkpoint"), random.randbytes(random.choice((0, 1, 50)))
    keep_bytes(path, whole)
    _damaged(random, path)

    def work() -> None:
        if kept_bytes(path) not in (None, whole):
            raise Violation("damaged bytes are taken for a checkpoint")

    return call(work)


_TINY = [
    "dpsgd",
    "--canaries",
    "4",
    "--steps",
    "1",
    "--batch-size",
    "4",
    "--examples",
    "20",
    "--epsilon",
    "8",
]


def _trainings(random: Random) -> str:
    line = [*_TINY, "--out", "results", "--json"]
    command(line)
    kept = next(Path("results").glob("*.json"))
    target = random.choice((kept, kept.with_suffix(".checkpoint")))
    if target != kept:
        keep_bytes(target, random.randbytes(200))
        kept.unlink()
    if target != kept and mutator.seldom(random, 0.2):
        return command(line)  # whole, and yet no checkpoint
    _damaged(random, target)
    code = command(line)
    if code != "0":
        raise Violation(f"a damaged {target.suffix} ends the training with {code}")
    return code


def _data_sets(random: Random) -> str:
    from tightaudit.paper.trainings.data import load

    if mutator.seldom(random, 0.5):
        images = np.zeros((2, 3072), np.uint8)
        batch = pickle.dumps({b"data": images, b"labels": [1, 2]}, protocol=random.choice((2, 4)))
        folder, names = "cifar10", [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
        contents = dict.fromkeys(names, batch)
    else:
        folder, contents = "fashion-mnist", {}
        for part in ("train", "t10k"):
            sizes = b"".join(size.to_bytes(4, "big") for size in (2, 28, 28))
            contents[f"{part}-images-idx3-ubyte"] = b"\0\0\x08\x03" + sizes + bytes(2 * 28 * 28)
            contents[f"{part}-labels-idx1-ubyte"] = b"\0\0\x08\x01" + sizes[:4] + b"\1\2"
    place = Path(folder)
    place.mkdir()
    for name, whole in contents.items():
        place.joinpath(name).write_bytes(whole)
    _damaged(random, place / random.choice(list(contents)))
    return call(lambda: load(folder, place))


def _audit_line(random: Random) -> tuple[list[str], bytes]:
    kind = random.choice((*FORMATS, "run"))
    line, path = command_line(random, "audit"), put(random, kind)
    if "--members" in line:
        put(random, "csv", "bits")
        put(random, "npz", "bits")
    piped = mutator.seldom(random, 0.15)
    line.insert(1, "-" if piped else str(path))
    return line, content(random, kind) if piped else b""


def _line(random: Random, name: str) -> tuple[list[str], bytes]:
    return _audit_line(random) if name == "audit" else (command_line(random, name), b"")


def _command(name: str) -> Callable[[Random], str]:
    return lambda random: command(*_line(random, name))


def _any_words(random: Random) -> str:
    words = [
        *COMMANDS,
        "--version",
        "--help",
        "-h",
        "--",
        mutator.text(random),
        mutator.changed_text(random, "audit"),
    ]
    line = random.choices(words, k=random.randint(0, 3))
    if line[:1] == ["demo"] or line[:1] == ["dpsgd"]:  # these two need nothing, and take minutes
        line.append("--help")
    return command(line)


def _processes(random: Random) -> str:
    return process(*_line(random, random.choice(("pvalue", "bound", "audit", "many-runs", "reproduce"))))


_READERS = {"csv": 120, "tsv": 50, "jsonl": 100, "parquet": 100, "npz": 100}
_COMMANDS = {
    "pvalue": 60, "bound": 50, "many-runs": 30, "audit": 70, "plan": 12, "calibrate": 20, "dpsgd": 12,
    "reproduce": 10,
    "demo": 5,
}  # fmt: skip
TARGETS = {
    target.name: target
    for target in (
        *(Target(f"read {kind}", share, _reader(kind)) for kind, share in _READERS.items()),
        Target("saved run", 80, _saved_run),
        Target("claim text", 60, _claim_text),
        Target("family text", 40, _family_text),
        Target("other texts", 40, _other_texts),
        Target("figure cells", 20, _cells),
        Target("kept bytes", 5, _kept),
        Target("trainings", 3, _trainings),
        Target("data sets", 20, _data_sets),
        *(Target(f"tightaudit {name}", share, _command(name)) for name, share in _COMMANDS.items()),
        Target("tightaudit", 10, _any_words),
        Target("processes", 3, _processes),
    )
}
