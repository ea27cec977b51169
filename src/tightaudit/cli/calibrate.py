"""`tightaudit calibrate`: how often a method is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tightaudit.cli.options import AsJson, Guesses, Released, Seed, counting, measuring, naming
from tightaudit.cli.output import print_json, print_view, progress_bar

if TYPE_CHECKING:
    from tightaudit.simulate.calibration import Audits


@dataclass(frozen=True)
class AuditsOptions:
    """The audits to repeat."""

    n: Guesses
    released: Released = "planned"
    table: Annotated[
        bool, typer.Option("--table", help="Calibrate the rows of an audit's table instead of methods.")
    ] = False
    method: Annotated[
        list[str] | None, naming("A method; repeat it for several. All by default: {methods}.", "methods")
    ] = None
    runs: Annotated[int, counting("Runs of n canaries each in every audit.")] = 1
    look: Annotated[
        list[int] | None, counting("Look after this step, of a mechanism with steps; repeat it for several.")
    ] = None
    repetitions: Annotated[int, counting("Number of audits.")] = 10_000
    seed: Seed = 0

    def audits(self) -> Audits:
        """As one object."""
        from tightaudit.planning.looks import Looks
        from tightaudit.simulate.calibration import Audits

        return Audits(
            n=self.n,
            released=self.released,
            methods=self.method or None,
            table=self.table,
            times=self.repetitions,
            seed=self.seed,
            runs=self.runs,
            looks=None if not self.look else Looks(tuple(self.look)),
        )


def calibrate(
    mechanism: Annotated[
        str,
        naming("What to audit, as in 'gaussian(mu=1)'. Known: {mechanisms}.", "mechanisms"),
    ],
    repeated: AuditsOptions,
    claim: Annotated[
        str | None, typer.Option(help="The claim to test, by default the one the mechanism satisfies.")
    ] = None,
    level: Annotated[list[float] | None, measuring("Nominal level; repeat it for several.")] = None,
    delta: Annotated[float, measuring("The δ of the mean bounds.")] = 1e-5,
    bounds: Annotated[
        bool, typer.Option(help="Also show mean bounds beside the true ε; takes longer.")
    ] = True,
    workers: Annotated[int, typer.Option(help="Processes; -1 uses all cores.")] = -1,
    as_json: AsJson = False,
) -> None:
    """How often does a method reject a true claim? Repeated audits of a mechanism of known privacy.

    [bold]Examples[/bold]

    tightaudit calibrate --mechanism 'gaussian(mu=1)' --n 1000 --released 200

    tightaudit calibrate --mechanism 'laplace(mu=1)' --n 1000 --released best --table --no-bounds

    tightaudit calibrate --mechanism 'shared-score(claim=gaussian(mu=1))' --n 200 --released 200 --no-bounds
    """
    from tightaudit.render.json.calibration import calibration_fields
    from tightaudit.render.terminal.calibration import calibration_view
    from tightaudit.simulate.calibration import calibrate as repeat_audits

    with progress_bar("auditing") as progress:
        result = repeat_audits(
            mechanism,
            repeated.audits(),
            claim=claim,
            levels=level or (0.05,),
            delta=delta,
            bounds=bounds,
            workers=workers,
            progress=progress,
        )
    if as_json:
        print_json(calibration_fields(result))
    else:
        print_view(*calibration_view(result))
