"""`tightaudit plan`: how many canaries, before you spend a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tightaudit.cli.options import AsJson, ClaimOptions, Confidence, Delta, counting, measuring
from tightaudit.cli.output import print_json, print_view, progress_bar
from tightaudit.cli.streams import say

if TYPE_CHECKING:
    from tightaudit.planning.canaries import Goal


@dataclass(frozen=True)
class GoalOptions:
    """What the auditor wants."""

    certify: Annotated[
        float | None, measuring("Share of the true ε to certify; 0.8 by default.", metavar="SHARE")
    ] = None
    catch: Annotated[
        float | None, measuring("Catch a mechanism with this many times the claimed ε.", metavar="FACTOR")
    ] = None
    power: Annotated[float, measuring("Probability of catching it.")] = 0.9

    def goal(self) -> Goal:
        """As one goal; by default to certify 80%."""
        from tightaudit.planning.canaries import Goal

        return Goal(0.8 if self.certify is self.catch is None else self.certify, self.catch, self.power)


def plan(
    delta: Delta,
    claimed: ClaimOptions,
    wanted: GoalOptions,
    canary_strength: Annotated[float, measuring("Strength of the canaries; 1 is the strongest.")] = 1.0,
    canaries: Annotated[
        int | None, counting("Take this number, of each run, as given, and say what to expect.")
    ] = None,
    runs: Annotated[
        list[int] | None, counting("Consider so many runs, independent of each other; may be repeated.")
    ] = None,
    confidence: Confidence = 0.95,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Plot the expected bound against the number of canaries."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How many canaries does an audit need, and what can you expect? One row per combination of beliefs.

    [bold]Examples[/bold]

    tightaudit plan --claim 'gaussian(mu=1)' --delta 1e-5 --certify 0.9

    tightaudit plan --claim 'dp-sgd(sigma=1.1,q=0.1,steps=200)' --delta 1e-5 --catch 2 --power 0.9

    tightaudit plan --claim 'gaussian(mu=1)' --delta 1e-5 --canaries 10000 --runs 5 --runs 20

    tightaudit plan --claim-epsilon 8 --delta 1e-5 --canary-strength 0.7 --plot plan.png
    """
    from tightaudit.planning.canaries import plan as canaries_needed
    from tightaudit.render.pictures import require_picture

    if plot is not None:
        require_picture("plot", plot)  # before the planning, which takes a while
    with progress_bar("rows of the table") as progress:
        result = canaries_needed(
            **vars(claimed),
            delta=delta,
            goal=wanted.goal(),
            confidence=confidence,
            canary_strength=canary_strength,
            canaries=canaries,
            runs=runs or (),
            progress=progress,
        )
    if plot is not None:
        with progress_bar("points of the plot") as progress:
            result.to_plot(plot, progress=progress)
        say(f"wrote {plot}")
    if as_json:
        print_json(result.to_dict())
        return
    from tightaudit.render.terminal.plan import plan_view

    print_view(plan_view(result))
