"""Command lines of every command: small enough to end soon, and wrong in every way that options can be."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz import mutator

from tightaudit.claims.base import CLAIMS
from tightaudit.methods.base import METHODS
from tightaudit.paper.figures.base import FIGURES
from tightaudit.simulate.mechanisms.base import MECHANISMS

Values = Callable[[Random], str]
Options = dict[str, Values | None]
"""What an option is given; None for one that takes nothing."""


def count(largest: int) -> Values:
    """A count that is mostly small, and sometimes none."""
    return lambda random: (
        mutator.number(random) if mutator.seldom(random, 0.1) else str(random.randint(0, largest))
    )


def one_of(*names: str) -> Values:
    """One of some numbers or names, or something near one."""

    def drawn(random: Random) -> str:
        if mutator.seldom(random, 0.05):
            return random.choice((mutator.number, mutator.text))(random)
        name = random.choice(names)
        return mutator.changed_text(random, name) if mutator.seldom(random, 0.05) else name

    return drawn


def call_text(random: Random, examples: list[str]) -> str:
    """A claim, family or mechanism in its text form, with other numbers or parts in it."""
    text = random.choice(examples)
    for _ in range(random.choice((0, 1, 1, 2))):
        match random.randrange(4):
            case 0:
                text = mutator.changed_text(random, text)
            case 1:  # leave out an argument
                head, _, _ = text.rpartition(",")
                text = head + ")" if head else text.split("(")[0]
            case 2:
                text = text.replace("1", mutator.number(random), 1)
            case _:
                depth = random.choice((1, 3, 25, 2_000))
                text = f"{'shared-score(claim=' * depth}{text}{')' * random.choice((0, depth))}"
    return text


def claim(random: Random) -> str:
    """A claim that is cheap to compute with, or a text that hardly is one."""
    if mutator.seldom(random, 0.7):
        return random.choice(("gaussian(mu=1)", "laplace(mu=0.8)", "approx-dp(epsilon=1,delta=0.01)"))
    cheap = [CLAIMS[name].example for name in CLAIMS if not CLAIMS[name].grain]
    return call_text(random, cheap)


def family(random: Random) -> str:
    """A family that is cheap to search."""
    if mutator.seldom(random, 0.7):
        return random.choice(("gaussian", "laplace", "approx-dp", "subsampled-gaussian(q=0.5)"))
    return claim(random)


def strata(random: Random) -> str:
    """Strata of rank-weighted as text."""
    pieces = [f"{count(10)(random)}x{count(5)(random)}" for _ in range(random.randint(1, 3))]
    whole = ",".join(pieces)
    return mutator.changed_text(random, whole) if mutator.seldom(random, 0.2) else whole


def mechanism(random: Random) -> str:
    """A mechanism as text."""
    examples = [MECHANISMS[name].example for name in MECHANISMS if name != "dp-sgd"]
    return random.choice(examples) if mutator.seldom(random, 0.4) else call_text(random, examples)


METHOD = one_of(*METHODS, "exact", "exact")
DELTA = one_of("1e-5", "0.01", "0.1", "0", "1", "1e-300", "0.5")
CONFIDENCE = one_of("0.95", "0.5", "0.999", "0", "1")
RELEASED = one_of("planned", "best", "0.2", "1", "5", "1.0", "20", "100")
PAGE = one_of("a.html", "no/such/folder/a.html", ".", "", "\x1b[2J.html", "é.html")
SCORES = one_of("score", "member", "id", "x")

COUNTS: Options = {
    "--n": count(60), "--released": count(30), "--errors": count(10), "--runs": one_of("1", "1", "2", "3"),
    "--statistic": count(20), "--method": METHOD, "--tail": one_of("chernoff", "hoeffding"),
    "--strata": strata,
    "--json": None,
}  # fmt: skip
COMMANDS: dict[str, tuple[Options, tuple[str, ...]]] = {
    "pvalue": ({**COUNTS, "--claim": claim}, ("--n", "--released", "--errors", "--claim")),
    "bound": (
        {**COUNTS, "--family": family, "--delta": DELTA, "--confidence": CONFIDENCE},
        ("--n", "--released", "--errors", "--family", "--delta"),
    ),
    "many-runs": (
        {
            "--fp": count(20), "--negatives": count(40), "--fn": count(20), "--positives": count(40),
            "--delta": DELTA,
            "--confidence": CONFIDENCE, "--json": None,
        },
        ("--fp", "--negatives", "--fn", "--positives", "--delta"),
    ),
    "audit": (
        {
            "--members": one_of("bits.csv", "bits.npz", "none.csv", "-"), "--score-column": SCORES,
            "--member-column": SCORES, "--id-column": SCORES, "--run-column": SCORES,
            "--format": one_of("csv", "tsv", "jsonl", "parquet", "npz"), "--claim": claim,
            "--claim-epsilon": one_of("1", "0", "8", "700"), "--family": family, "--delta": DELTA,
            "--confidence": CONFIDENCE, "--independent": None, "--dependent": None, "--family-known": None,
            "--family-unknown": None, "--guessing": one_of("two-sided", "one-sided", "threshold"),
            "--threshold": one_of("0", "1.5", "-1"), "--seed": count(9), "--html": PAGE, "--json": None,
            "--fail-on-violation": None, "--released": RELEASED, "--method": METHOD,
        },
        ("--delta", "--method"),
    ),
    "plan": (
        {
            "--claim": claim, "--claim-epsilon": one_of("1", "0", "8"), "--family": family, "--delta": DELTA,
            "--certify": one_of("0.1", "0.5", "0", "1"), "--catch": one_of("2", "1", "0"),
            "--power": one_of("0.9", "0", "1"), "--canary-strength": one_of("1", "0.5", "0"),
            "--runs": one_of("1", "2"), "--confidence": CONFIDENCE, "--plot": one_of("a.txt", "no/a.png", "",
            "."),
            "--json": None, "--canaries": one_of("10", "20", "1", "0"),
        },
        ("--claim", "--delta", "--canaries"),
    ),
    "calibrate": (
        {
            "--mechanism": mechanism, "--n": count(12), "--repetitions": one_of("1", "2", "0"),
            "--workers": one_of("1"),
            "--released": RELEASED, "--table": None, "--method": METHOD, "--runs": one_of("1", "2", "0"),
            "--look": one_of("1", "5", "10"), "--seed": count(9), "--claim": claim, "--level": CONFIDENCE,
            "--delta": DELTA, "--json": None,
        },
        ("--mechanism", "--n", "--repetitions", "--workers", "--method"),
    ),
    "dpsgd": (
        {
            "--data": one_of("digits", "cifar10", "fashion-mnist"), "--data-from": one_of("none", ".", "",
            "/dev/null"),
            "--model": one_of("small", "resnet14", "none"), "--canaries": one_of("0", "4"),
            "--steps": one_of("0", "1"),
            "--batch-size": one_of("0", "2000", "4"), "--optimizer": one_of("adam", "sgd"), "--delta": DELTA,
            "--learning-rate": one_of("0", "0.1"), "--examples": one_of("0", "1", "20"), "--seed": count(9),
            "--released": one_of("0", "1"), "--confidence": CONFIDENCE, "--out": one_of("results"),
            "--json": None,
        },
        (),
    ),
    "reproduce": ({"--list": None, "--without": one_of(*FIGURES), "--fresh": None, "--out": one_of("figures",
    "")}, ()),
    "demo": ({"--json": None, "--seed": count(9), "--bug": one_of("less-noise", "shuffled")}, ()),
}  # fmt: skip
"""The options of each command, and those that nearly every line has."""
DOOMED: dict[str, Options] = {
    "dpsgd": {
        "--epsilon": lambda random: random.choice(("x", "0", "-1", "nan", "1,,2", "1e400", "701", "", "5²"))
    },
    "reproduce": {"--engine": lambda random: random.choice(("none", "", "\x1b[2J", "tcp:/x"))},
    "demo": {"--html": lambda random: random.choice(("no/such/folder/a.html", ".", ""))},
}
"""What makes sure that a command which would take minutes is refused."""


def command_line(random: Random, command: str) -> list[str]:
    """A command with options, of which some are wrong, left out or given twice."""
    options, usual = COMMANDS[command]
    others = [name for name in options if name not in usual]
    chosen = [name for name in usual if not mutator.seldom(random, 0.03)]
    chosen += random.sample(others, min(len(others), random.choice((0, 0, 1, 1, 2, 3, 6))))
    words = [command]
    for name in chosen:
        values = options[name]
        words += [name] if values is None else [name, values(random)]
    if mutator.seldom(random, 0.05):
        at = random.randrange(1, len(words) + 1)
        words[at : at + random.randint(0, 1)] = [
            random.choice((mutator.text(random), "--n", "--help", "-h", "--"))
        ]
    if command == "reproduce":
        words.insert(1, one_of("all", *FIGURES)(random))
    for name, values in DOOMED.get(command, {}).items():
        assert values is not None
        words += [name, values(random)]
    return words
