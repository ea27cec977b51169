"""The words for what was found and believed, the same in text, tables, plots, pages and JSON."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from tightaudit.support.errors import printable
from tightaudit.support.notation import Value, shortest, text_form

if TYPE_CHECKING:
    from tightaudit.auditing.power import Visible
    from tightaudit.auditing.report import Looked, Report
    from tightaudit.auditing.rows import Row
    from tightaudit.bounds.beliefs import Beliefs
    from tightaudit.bounds.one_run import Bound
    from tightaudit.claims.base import Claim
    from tightaudit.claims.family import Family
    from tightaudit.evidence.checkup import Checkup

INDEPENDENT, ANY = "independent", "any"
UNCONDITIONAL = "whatever the dependence between canaries and the shape of the curve"
NO_FIT = "no fit"
COMPOSED = "Gaussian steps, composed"
_SMALLEST_P_VALUE = 1e-99
_DIGITS = 6
_APART = "the runs are independent of each other"


def percent(confidence: float) -> str:
    """A confidence for a sentence.

    >>> percent(0.95)
    '95%'
    """
    return f"{100 * confidence:.10g}%"


def rounded_down(epsilon: float) -> str:
    """A lower bound to three decimals, which must not gain from being printed.

    >>> rounded_down(4.2399)
    '4.239'
    """
    return f"{Decimal(epsilon).quantize(Decimal('0.001'), ROUND_FLOOR):f}"


def last_rejected(bound: Bound) -> str:
    """The least private member that a bound rejects, by a parameter whose rounding is rejected as well.

    >>> import tightaudit as ta
    >>> evidence = ta.Evidence(n=1000, released=200, errors=25)
    >>> bound = ta.lower_bound(evidence, "gaussian", delta=1e-5)
    >>> round(bound.parameter, 7), last_rejected(bound)
    (0.8532201, 'rejected up to mu = 0.85322')
    """
    assert bound.parameter is not None
    family = bound.family
    more_private = ROUND_CEILING if family.protects else ROUND_FLOOR
    parameter = Context(prec=_DIGITS, rounding=more_private).create_decimal_from_float(bound.parameter)
    return f"rejected {family.direction} {family.parameter} = {float(parameter):.{_DIGITS}g}"


def shown_p_value(p: float) -> str:
    """A p-value for a table.

    >>> shown_p_value(0.01234), shown_p_value(1e-200)
    ('0.012', '<1e-99')
    """
    return f"{p:.2g}" if p >= _SMALLEST_P_VALUE else f"<{_SMALLEST_P_VALUE:g}"


def outcomes(beliefs: Beliefs) -> str:
    """What a row believes of outcomes, for a cell of a table."""
    if beliefs.runs > 1:
        return f"{beliefs.runs} runs"
    return INDEPENDENT if beliefs.independent else ANY


def curve(beliefs: Beliefs) -> str:
    """What a row believes of the privacy curve, for a cell of a table."""
    return ANY if beliefs.family is None else shown_family(beliefs.family)


def shown_family(family: Family) -> str:
    """A family for a cell: one of a part of a training in words, since the whole of it is in the claim."""
    return str(family) if family.besides is None else COMPOSED


def in_cells(beliefs: Beliefs) -> str:
    """Both beliefs, as their cells in the table."""
    return f"{outcomes(beliefs)}, {curve(beliefs)}"


def in_legend(beliefs: Beliefs) -> str:
    """Both beliefs, for the legend of a plot or beside a bar."""
    dependence = f"{INDEPENDENT} outcomes" if beliefs.independent else f"{ANY} dependence"
    if beliefs.runs > 1:
        dependence = f"{beliefs.runs} {INDEPENDENT} runs"
    return f"{dependence}, {curve(beliefs)} curve"


def beliefs_in_words(beliefs: Beliefs) -> str:
    """Both beliefs as a sentence without its if; empty if there is nothing to believe."""
    believed = ["outcomes are independent"] if beliefs.independent else []
    if beliefs.runs > 1:
        believed = [_APART]
    if beliefs.family is not None and beliefs.family.besides is not None:
        believed.append(f"each participation is hidden by Gaussian noise, {beliefs.family.besides}")
    elif beliefs.family is not None:
        believed.append(f"the privacy curve is in the family {beliefs.family}")
    return " and ".join(believed)


def condition(beliefs: Beliefs) -> str:
    """Both beliefs as the end of a sentence."""
    believed = beliefs_in_words(beliefs)
    return f"if {believed}" if believed else UNCONDITIONAL


def condition_of_decision(row: Row) -> str:
    """The beliefs on which a row rejects the claim, as the end of a sentence.

    A row that tests the claim itself believes in no family: the claim is what it disproves.
    """
    if not row.tests_claim_itself:
        return condition(row.beliefs)
    if row.beliefs.independent or row.beliefs.runs > 1:
        return independence_condition(True, runs=row.beliefs.runs)
    return UNCONDITIONAL


def independence_condition(independent: bool, *, stated: bool = False, runs: int = 1) -> str:
    """The belief about outcomes alone, as the end of a sentence.

    >>> independence_condition(True)
    'if outcomes are independent'
    """
    if runs > 1:
        return f"if {_APART}"
    if not independent:
        return "whatever the dependence between outcomes"
    return f"if outcomes are independent{', as stated' if stated else ''}"


def bound_sentence(bound: Bound) -> str:
    """A bound in one sentence that can be quoted, its method and its beliefs included."""
    sure = f"{percent(bound.confidence)} confidence"
    believed = beliefs_in_words(bound.beliefs)
    rests = f"{bound.method.name}; if {believed}" if believed else bound.method.name
    if bound.status == "none-rejected":
        return f"no lower bound at δ={bound.delta:g}: nothing is rejected with {sure} ({rests})"
    if bound.epsilon is None:
        return (
            f"every claim in the family {bound.family} is rejected with {sure} ({rests}): "
            "the family does not describe this mechanism"
        )
    return f"ε ≥ {rounded_down(bound.epsilon)} at δ={bound.delta:g} with {sure} ({rests})"


def finding(row: Row) -> str:
    """The bound of a row in one sentence."""
    sure = f"with {percent(row.confidence)} confidence"
    if row.bound.status == "none-rejected":
        return f"No lower bound at δ = {row.bound.delta:g} {sure}: nothing is rejected."
    if row.epsilon is None:
        return f"Every claim in the family {row.bound.family} is rejected {sure}, {condition(row.beliefs)}."
    return f"ε ≥ {rounded_down(row.epsilon)} at δ = {row.bound.delta:g} {sure}, {condition(row.beliefs)}."


def spoken(claim: Claim | None) -> str:
    """A claim as it is spoken of."""
    if claim is None:
        return "no claim"
    if claim.point is None:
        return f"the claim {claim}"
    return f"ε ≤ {shortest(claim.point[0])} at δ = {shortest(claim.point[1])}"


def verdict_sentence(report: Report) -> str:
    """What an audit found, in one sentence, with the beliefs it rests on."""
    row, headline, claimed = report.claim_row, report.headline, spoken(report.question.claim)
    if report.question.claim is None:
        if headline is None:
            return "No row can be quoted on what was stated: they all need independent outcomes."
        return finding(headline)
    if row is None:
        return "The claim was not decided: every row assumes more than was stated."
    rests = condition_of_decision(row)
    sure = f"{percent(report.question.confidence)} confidence"
    if report.looked is not None and report.rejected_before is not None:
        return (
            f"The run was inconsistent with its claim after {report.rejected_before.step:,} steps "
            f"(p = {shown_p_value(report.rejected_before.p_value or 0.0)}), at "
            f"{percent(report.looked.confidence)} confidence for all looks together, {rests}."
        )
    if row.rejected:
        audited_runs = "The runs are" if report.run.sizes else "The run is"
        return f"{audited_runs} inconsistent with {claimed}, at {sure}, {rests}."
    few = "is" if report.run.n == 1 else "are"
    audited_runs = "The runs do" if report.run.sizes else "The run does"
    passed = f"{audited_runs} not contradict {claimed}, at {sure}, {rests} (p = {row.p_value:.3g})."
    if report.visible.epsilon is None:
        return f"{passed} It could not have: {canaries_in_words(report)} {few} too few to show any leak."
    return f"{passed} That is no proof of privacy."


def statement(report: Report) -> str:
    """What was found in a few words, for the top of a page; the sentences below it say when it holds.

    >>> import tightaudit as ta
    >>> statement(ta.audit([2.0, 1.0, -1.0], [1, 1, 0], delta=1e-5, claim="gaussian(mu=1)"))
    'Too few canaries to tell'
    """
    if report.violated:
        return "It leaks more than claimed"
    if report.violated is False:
        if report.visible.epsilon is None:
            return "Too few canaries to tell"
        if report.faulted:
            return "Nothing contradicts the claim, but the check-up found a fault"
        return "Nothing contradicts the claim" + (", but see the warning" if report.warnings else "")
    if report.question.claim is not None:
        return "The claim was not decided"
    if report.epsilon:
        return f"It leaks at least ε = {rounded_down(report.epsilon)}"
    return "No leak was shown"


def bars_caption(report: Report) -> str:
    """What the bars of audited ε show."""
    claimed = "The dashed line is the claimed ε. " if report.question.claim is not None else ""
    sure = percent(report.question.confidence)
    return (
        f"Lower bounds on ε at δ = {report.question.delta:g}, each with {sure} confidence if the beliefs "
        f"beside it are true. {claimed}The bold one assumes only what was stated."
    )


def beliefs_explained(report: Report) -> list[tuple[str, str]]:
    """The words in the columns of beliefs, and what each asks you to believe."""
    words = [
        (
            "outcomes: independent",
            "Whether a canary's score looks like a member's depends only on its own coin and its own noise. "
            "This is false for canaries that share noise, a batch or a coordinate.",
        ),
        ("outcomes: any", "Nothing is assumed: canaries may influence each other in any way."),
    ]
    if report.question.runs:
        words.insert(
            1,
            (
                f"outcomes: {len(report.question.runs)} runs",
                "Each run had coins and randomness of its own. Inside a run, canaries may influence each "
                "other in any way.",
            ),
        )
    family = report.question.family
    if family is not None and family.besides is not None:
        words.append(
            (
                f"privacy curve: {COMPOSED}",
                "Each time a canary was sampled it flipped a coin whether to contribute, so what is tested "
                "is the Gaussian noise of single steps. ε is that of the whole training with the noise so "
                f"found. That follows if {family.besides}. Noise that repeats from step to step, or a record "
                "that is sampled too often, does not show here: the check-up looks for them.",
            )
        )
        return words
    if family is not None:
        words.append(
            (
                f"privacy curve: {family}",
                "The trade-off between false positives and false negatives has the shape of this family, as "
                "it does if the mechanism is the one named. ε is bounded within the family.",
            )
        )
    words.append(("privacy curve: any", "Nothing is assumed: the bound is for (ε, δ)-DP alone."))
    return words


def verdict_sentences(report: Report) -> list[str]:
    """The verdict; with a claim also its ε beside the bound, and how the two fit together."""
    sentences = [verdict_sentence(report)]
    claimed, headline = report.question.claimed_epsilon, report.headline
    if claimed is None or headline is None:
        return sentences
    found = f"{audited(headline)} (row ▶)"
    if report.held_back:
        found = f"as much, {condition(headline.beliefs)} (row ▶): no more is said beside a claim that stands"
    sentences.append(f"Claimed ε = {claimed:.4g} at δ = {report.question.delta:g}; audited {found}.")
    row = report.claim_row
    if row is not None and row is not headline and row.rejected and not headline.rejected:
        sentences.append(
            "That bound holds for a privacy curve of any shape, and by itself does not contradict the claim. "
            "The test of the claimed curve itself does "
            f"(row ◀, p = {shown_p_value(row.p_value or 0.0)})."
        )
    if not report.violated and (hint := _if_more_is_known(report)) is not None:
        sentences.append(hint)
    return sentences


def _if_more_is_known(report: Report) -> str | None:
    """How to have a row decide that believes more; never what it would decide, which is one more test."""
    if report.decides.could_decide is None:
        return None
    row, question = report.rows[report.decides.could_decide], report.question
    known, how = [], []
    if row.beliefs.independent and not question.independent:
        known.append("that outcomes are independent")
        how.append("independent=True (--independent)")
    if row.beliefs.family is not None and not (question.family_known or row.tests_claim_itself):
        known.append(f"that the privacy curve is in the family {row.beliefs.family}")
        how.append("family_known=True (--family-known)")
    return (
        f"If you know {' and '.join(known)}, state it with {' and '.join(how)}: "
        f"then {row.method.name}, in the first row, decides."
    )


def audited(row: Row) -> str:
    """What a row found about ε, with its beliefs, as a part of a sentence."""
    if row.bound.status == "none-rejected":
        return "without a lower bound: nothing is rejected"
    if row.epsilon is None:
        return f"above every member of the family {row.bound.family}, {condition(row.beliefs)}"
    return f"ε ≥ {rounded_down(row.epsilon)}, {condition(row.beliefs)}"


def canaries_in_words(report: Report) -> str:
    """How many canaries there were.

    >>> import tightaudit as ta
    >>> canaries_in_words(ta.audit([2.0], [1], delta=1e-5))
    '1 canary'
    """
    family = report.question.family
    if family is not None and family.besides is not None:
        return f"{report.run.n:,} participations of canaries"
    runs = f" in {len(report.run.sizes)} runs" if report.run.sizes else ""
    return f"{report.run.n:,} {'canary' if report.run.n == 1 else 'canaries'}{runs}"


def visible_sentence(visible: Visible) -> str:
    """The smallest leak that an audit or an assertion could have detected."""
    if visible.mechanism is None:
        return "Could have detected: nothing. No leak, however large, would have shown."
    shown = "contradicts the claim" if visible.claimed else "gives a bound above 0"
    return (
        f"Could have detected: ε = {visible.epsilon:.3g} or more at δ = {visible.delta:g} "
        f"({brief(visible.mechanism)}). With this many canaries, that {shown} in {percent(visible.often)} "
        "of audits, if canaries are as strong as possible and outcomes are independent."
    )


def brief(claim: Claim) -> str:
    """A claim with three digits for each parameter, where it is only an illustration.

    >>> import tightaudit as ta
    >>> brief(ta.Gaussian(1.23456)), brief(ta.DpSgd(1.0, 0.1, 200))
    ('gaussian(mu=1.23)', 'dp-sgd(sigma=1,q=0.1,steps=200)')
    """
    return text_form(claim.name, {name: _three_digits(value) for name, value in claim.parameters.items()})


def _three_digits(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(float(f"{number:.3g}") for number in value)
    return float(f"{value:.3g}")


def setting_line(report: Report) -> str:
    """How many canaries there were and how their bits were guessed."""
    run, guessing = report.run, report.evidence.guessing
    assert guessing is not None
    source = f"{printable(run.source)}: " if run.source else ""
    return (
        f"{source}{canaries_in_words(report)}, {int(run.members.sum()):,} in; {guessing.rule} guessing; "
        f"ties by seed {guessing.seed}"
    )


def shown_claim(row: Row) -> str:
    """The claim as the row tests it, without digits nobody needs.

    >>> import tightaudit as ta
    >>> report = ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5, claim="gaussian(mu=1)")
    >>> shown_claim(report.rows[0]), shown_claim(report.rows[1])
    ('gaussian(mu=1)', 'ε ≤ 4.3772')
    """
    if row.tested is not None and row.tested.point is not None:
        return f"ε ≤ {row.tested.epsilon(row.bound.delta):.5g}"
    return str(row.tested) if row.tested is None or row.tests_claim_itself else brief(row.tested)


def shown_epsilon(bound: Bound) -> str:
    """The bound for a table: rounded down, or why there is none."""
    return NO_FIT if bound.epsilon is None else rounded_down(bound.epsilon)


def shown_decision(row: Row) -> str:
    """Whether a row rejects the claim, for a cell of a table."""
    return "rejected" if row.rejected else "stands"


def checkup_sentences(checkup: Checkup) -> list[tuple[str, str]]:
    """What a check-up found, sentence by sentence, and of which kind each is: fault, note or none.

    >>> from tightaudit.evidence.checkup import Check, Checkup
    >>> checkup_sentences(Checkup((Check("noise", "1", "1.0", 0.4, "the noise is 1.0 of what was asked"),)))
    [('none', 'No fault was found in what the accountant assumes (1 check).')]
    """
    found = [("fault", f"Fault: {check.fault}.") for check in checkup.faults]
    if not found:
        count = len(checkup.checks)
        checks = f"{count} check" if count == 1 else f"{count} checks"
        found.append(("none", f"No fault was found in what the accountant assumes ({checks})."))
    found += [("note", f"Note: {check.fault}. That costs no privacy.") for check in checkup.notes]
    return found


def checked(checkup: Checkup, place: int) -> str:
    """The corrected p-value of a check, for a cell of a table; or that another, failed check explains it."""
    because = checkup.checks[place].explained_by
    return "explained" if because else shown_p_value(checkup.corrected[place])


def checkup_level(checkup: Checkup) -> str:
    """How often an honest training is faulted, and what a check-up is not."""
    explained = ""
    if any(check.explained_by for check in checkup.checks):
        explained = " Explained: a check that fails leaves this one without meaning."
    return (
        f"An honest training passes all of these checks with at least {percent(1 - checkup.level)} "
        "probability: p-values are corrected for their number. The check-up says where to look. It is "
        f"separate from the bound on ε, and does not change it.{explained}"
    )


def look_line(report: Report) -> str:
    """A look at a training in one line."""
    looked = report.looked
    assert looked is not None
    look = looked.taken[-1]
    place, of = looked.looks.at.index(look.step) + 1, len(looked.looks.at)
    bound = "no bound" if look.epsilon is None else f"ε ≥ {rounded_down(look.epsilon)}"
    claimed = "" if look.claimed is None else f" of {look.claimed:.4g} claimed so far"
    decided = ""
    if look.p_value is not None:
        decision = "REJECTED" if look.rejected else "stands"
        decided = f"; the claim {decision} (p = {shown_p_value(look.p_value)})"
    return f"look {place} of {of}, after {look.step:,} steps: {bound}{claimed}{decided}"


def looks_sentence(looked: Looked) -> str:
    """How several looks share a level."""
    level, last = round(1 - looked.confidence, 12), looked.taken[-1]
    return (
        f"Look {looked.looks.at.index(last.step) + 1} of {len(looked.looks.at)}, after {last.step:,} of "
        f"{looked.looks.at[-1]:,} steps. The looks share a level of {percent(level)}; this one has "
        f"{percent(round(1 - last.confidence, 12))}. So a true claim is rejected at any of them in at most "
        f"{percent(level)} of trainings."
    )


def notes(report: Report) -> list[str]:
    """What a reader of the table has to know."""
    sure = percent(report.question.confidence)
    lines = [
        visible_sentence(report.visible),
        f"Each row on its own holds with {sure} confidence, at δ = {report.question.delta:g}, if its beliefs "
        "are true; the largest, picked afterwards, does not.",
    ]
    if report.looked is not None:
        lines.append(looks_sentence(report.looked))
    if report.question.family is not None and not report.question.family_known:
        lines.append(
            f"Rows with the curve {shown_family(report.question.family)} hold only if the privacy curve is "
            "in that family."
        )
    if report.headline is not None:
        lines.append(f"▶ the bound to quote. It assumes only what was stated: {report.headline.beliefs}.")
    if report.claim_row is not None:
        lines.append(
            "◀ decides the claim, alone: this row tests it, assuming only what was stated. Whichever of "
            "several rows rejects would reject a true claim too often."
        )
    if isinstance(report.question.independent, str):
        lines.append(f"Independent outcomes: {printable(report.question.independent)}.")
    if report.release.tries_several:
        tried = dict.fromkeys(row.counts for row in report.rows if len(row.counts) > 1)
        counts = " or ".join(
            f"best of {len(each)} counts ({', '.join(f'{count:,}' for count in each)})" for each in tried
        )
        costs = [
            f"{row.cost:.3f} in ({in_cells(row.beliefs)})" for row in report.rows if row.cost is not None
        ]
        paid = f"; trying several cost in ε: {', '.join(costs)}" if costs else ""
        if tried:
            lines.append(f"Released: the {counts}{paid}.")
    if any(_believes_more_and_finds_less(row, other) for row in report.rows for other in report.rows):
        lines.append(
            "A row that believes more may have the smaller bound: rows release different numbers of guesses, "
            "decided before the errors were seen, and so see different errors. Both hold."
        )
    if any(row.epsilon is None for row in report.rows):
        lines.append(
            f"{NO_FIT}: every claim in the family is rejected with {sure} confidence, if the row's other "
            "beliefs are true; the curve is then not in that family."
        )
    remarks = {(row.method.name, row.bound.test.remark) for row in report.rows if row.bound.test.remark}
    lines += [f"{name}: {remark}." for name, remark in sorted(remarks)]
    methods = {row.method.name: row.method for row in report.rows}
    lines += [
        f"Caution: {name} {caveat}" for name in sorted(methods) if (caveat := methods[name].assumes.caveat)
    ]
    return lines


def _believes_more_and_finds_less(row: Row, other: Row) -> bool:
    same_curve = row.beliefs.family == other.beliefs.family
    believes_more = row.beliefs.independent and not other.beliefs.independent
    return same_curve and believes_more and row.bound.size < other.bound.size
