"""Comparison of several fits, and which of them to use.

    F   = (|rho_small|^2 - |rho_large|^2) / (p_large - p_small)  /  (c |rho_large|^2 / (n - p_large))
    BIC = sum over groups of (n_g / c) ln(|rho_g|^2 / n_g)  +  p ln(n / c)

c is the number of rows per independent row: neighbours are correlated by the row filter and by the
autocorrelation of the residuals. Without c every small term would be significant in a long log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.base.grouping import probability
from dynid.common.arrays import Array, Float, Int
from dynid.common.brief import one_line
from dynid.common.distributions import f_tail, student_quantile
from dynid.common.notices import Notice
from dynid.statistics.estimate_parts import level_of

# Of the held-out error: a simpler model that is no worse than this is preferred. Other parts of the
# same logs change the error by more.
WORTH = 0.05
_POOR = 20.0  # percent of the measured rms, without a model error: the best of poor fits is not recommended
SIGNIFICANT = 0.01


@dataclass(frozen=True)
class Line:
    """One way to fit.

    Attributes:
        label: Its name within the comparison.
        drive: Its drive terms.
        n_parameters: Base parameters fitted.
        fit_percent: Residual on the rows of the fit, in % of their size.
        held_out_percent: Error of efforts that were not fitted, low-passed as the rows, in %; of free
            motion what simulations miss, in % of the motion.
        effort_percent: The same as logged.
        change_percent: Of the held-out error against the first line; negative is better.
        F, p: Of the test against the first line, where that is nested in this one.
        bic: Less is better; only where the rows are those of the first line.
        by_effort: Held-out error of each effort, in % of its own size.
        folds: Held-out error of each fold, in %.
        failed: Why there is no figure.
        date: When the logs of a result were recorded, ISO 8601; empty: not known.
        verdict: On a result: `good`, `care` or `bad`; empty: not judged.
        model_percent: Of a result, its largest model error on the logs that it predicts, as in the verdict.
    """

    label: str
    model: str = ""
    estimator: str = ""
    drive: str = ""
    n_parameters: int | None = None
    fit_percent: float | None = None
    held_out_percent: float | None = None
    effort_percent: float | None = None
    change_percent: float | None = None
    F: float | None = None
    p: float | None = None
    bic: float | None = None
    by_effort: Mapping[str, float] = field(default_factory=dict)
    folds: tuple[float, ...] = ()
    failed: str = ""
    date: str = ""
    verdict: str = ""
    model_percent: float | None = None

    @property
    def error(self) -> float | None:
        """What lines are ranked by: the held-out error, low-passed where it is known."""
        return self.effort_percent if self.held_out_percent is None else self.held_out_percent


@dataclass(frozen=True)
class ParameterLine:
    """One parameter in all results.

    Attributes:
        values, sigmas, halves: Per result, with half of the 95 % interval; None where it has no such
            parameter.
        z: Largest difference between two results in units of its own deviation.
        p: Probability of a difference as large between any two of the results if the parameter is the same
            in all of them (Student's t, times the number of pairs).
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    sigmas: tuple[float | None, ...]
    z: float | None
    p: float | None = None
    halves: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Lines side by side.

    Attributes:
        title: What was compared.
        held_out: How data were held out, in words.
        recommended: Label of the line to use; empty if the errors do not show it.
        words: The recommendation.
        parameters: Of results, side by side.
    """

    title: str
    held_out: str
    lines: tuple[Line, ...]
    recommended: str = ""
    words: str = ""
    parameters: tuple[ParameterLine, ...] = ()
    warnings: tuple[Notice, ...] = ()

    __repr__ = one_line

    def __getitem__(self, label: str) -> Line:
        """The line called `label`."""
        from dynid.common.errors import InputError, nearest

        for line in self.lines:
            if line.label == label:
                return line
        raise InputError(f"no line '{label}'" + nearest(label, [line.label for line in self.lines]))

    @property
    def different(self) -> tuple[ParameterLine, ...]:
        """Parameters that differ significantly, the most significant first; all tests together err in 1 %."""
        tested = [entry for entry in self.parameters if entry.p is not None]
        differing = [entry for entry in tested if (entry.p or 0.0) * len(tested) < SIGNIFICANT]
        return tuple(sorted(differing, key=lambda entry: -(entry.z or 0.0)))

    def __str__(self) -> str:
        """What `dynid compare` prints, with arguments of Python instead of options."""
        from dynid.report.comparison import comparison_text

        return comparison_text(self)

    def summary(self) -> None:
        """Print the table, warnings first."""
        from dynid.report.comparison import print_comparison

        print_comparison(self)


@dataclass(frozen=True)
class FTest:
    """Whether the additional parameters of the larger model are significant.

    Attributes:
        F: Ratio of variances; about one where they are not needed.
        dof: Degrees of freedom of the larger model, as many as its rows are worth.
        p: Probability of a larger F if they are not needed.
    """

    F: float
    dof: int
    p: float


def f_test(
    small: float, large: float, more: int, n_rows: int, n_large: int, worth: float, dof: int | None = None
) -> FTest | None:
    """Test two nested fits with the same weights; None if there is nothing to test.

    Args:
        small, large: Weighted residual norms.
        more: Parameters that the larger model has more.
        n_rows: Rows of both.
        n_large: Parameters of the larger one.
        worth: Rows that are worth one, c.
        dof: Degrees of freedom of the larger one; default n_rows / worth - n_large.
    """
    if more <= 0 or large == 0.0:
        return None
    freedoms = max(1, int(n_rows / worth) - n_large) if dof is None else dof
    variance = large**2 / (n_rows - n_large) * worth
    F = max(0.0, small**2 - large**2) / more / variance
    return FTest(F, freedoms, f_tail(more, freedoms, F))


def bic(norms: Float[Array, "g"], counts: Int[Array, "g"], n_parameters: int, worth: float) -> float:
    """Bayesian information criterion of a fit whose groups have their own deviations.

    Args:
        norms: Residual norm of each group, its unit.
        counts: Rows of each group.
        n_parameters: Fitted.
        worth: Rows that are worth one.
    """
    floor = np.finfo(float).tiny
    rows = np.sum(counts / worth * np.log(np.maximum(norms**2 / counts, floor)))
    return float(rows + n_parameters * np.log(counts.sum() / worth))


def recommend(lines: Sequence[Line], usual: str = "") -> tuple[str, str]:
    """The line to take and why: the simplest whose held-out error is hardly above the least.

    Args:
        lines: To choose from.
        usual: The estimator that `identify` uses if none is given: the choice where the folds do not decide.
    """
    known = [line for line in lines if line.error is not None]
    if len(known) < 2:
        return "", "only one variant: use --friction, --drive, --estimators or --models"
    best = min(known, key=lambda line: line.error or 0.0)
    good = [line for line in known if (line.error or 0.0) <= (best.error or 0.0) * (1.0 + WORTH)]
    least = min(line.n_parameters or 0 for line in good)
    chosen = _of_equals([line for line in good if (line.n_parameters or 0) == least], usual)
    first = known[0]
    poor = all(_poor(line) for line in known)
    trusted = chosen.verdict in ("", "good") and not poor
    what = "error as logged, with noise," if chosen.held_out_percent is None else "held-out error"
    text = f"{'use' if trusted else 'best is'} {chosen.label}: {what} {chosen.error:.3g} %"
    if chosen is first:
        few = f", and nothing else is more than {100 * WORTH:.0f} % better"
        text += ", the smallest of all" if chosen is best else few
    else:
        change = 100.0 * (1.0 - (chosen.error or 0.0) / max(first.error or 0.0, np.finfo(float).tiny))
        more = (chosen.n_parameters or 0) - (first.n_parameters or 0)
        text += f", {abs(change):.2g} % {'less' if change >= 0.0 else 'more'} than {first.label}"
        text += f" with {abs(more)} {'more' if more > 0 else 'fewer'} parameters" if more else ""
    more = (best.n_parameters or 0) - (chosen.n_parameters or 0)
    if more > 0:
        gain = 100.0 * (1.0 - (best.error or 0.0) / max(chosen.error or 0.0, np.finfo(float).tiny))
        text += f"; {best.label} is {gain:.1f} % better, but has {more} more parameters: not worth it"
    if chosen.p is not None:
        verdict = "significant" if chosen.p < SIGNIFICANT else "not significant"
        text += f". Its additional terms are {verdict} (F = {chosen.F:.3g}, p {probability(chosen.p)})"
    tied = [line.label for line in known if line is not chosen and _apart(line, chosen) is False]
    if tied:
        remark = f", and {usual} is the usual estimator here" if usual and chosen.estimator == usual else ""
        text += (
            f". As good within the scatter of the folds: {'; '.join(tied)}. These data do not decide{remark}"
        )
    near = [line.label for line in good if line is not chosen and chosen.held_out_percent is None]
    if near:
        text += f". About as good, within {100 * WORTH:.0f} %: {', '.join(near)}"
    if poor:
        text += ". None predicts these logs: check their payload, columns and units"
    elif not trusted:
        text += f". Its verdict is '{chosen.verdict}': read its report first"
    return chosen.label, text


def _poor(line: Line) -> bool:
    """Whether a line does not predict; an error as logged is mostly noise where the model error is small."""
    if line.model_percent is not None:
        return level_of(line.model_percent, "") == "bad"
    return (line.error or 0.0) > _POOR


def _of_equals(lines: Sequence[Line], usual: str) -> Line:
    """Of lines of equal size the best, if the folds decide; else the usual estimator, or the first line."""
    stays = next((line for line in lines if line.estimator == usual), lines[0])
    best = min(lines, key=lambda line: line.error or 0.0)
    return best if _apart(best, stays) else stays


def _apart(line: Line, other: Line) -> bool | None:
    """Whether two lines of equal size differ by more than their folds scatter (paired t-test, 95 %).

    None: equal in every fold, or no folds to compare.
    """
    if line.n_parameters != other.n_parameters or len(line.folds) != len(other.folds):
        return None
    more = np.subtract(line.folds, other.folds)
    if len(more) < 2 or not np.any(more):
        return None
    deviation = float(np.std(more, ddof=1)) / np.sqrt(len(more))
    return bool(abs(np.mean(more)) > student_quantile(len(more) - 1, 0.975) * deviation)
