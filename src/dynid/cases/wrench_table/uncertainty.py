"""Uncertainty of a fit to tables: if rounding is the only noise, its covariance is known in advance.

Effect of rounding in the table on the estimate: every number is changed within its last digit.

With rows of weight w and their triangle R, an error d of the equations moves the estimate by

    dchi = R^-1 R^-T sum w^2 W^T d,        d = dY - dW chi

so the covariance due to rounding follows from some dozens of perturbed tables. Equal numbers get equal
perturbations: a constant acceleration has one rounding error, not one per instant.

Effect of rounding on the equations of a table, and parameters that its motion does not excite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.estimator.ols import least_squares
from dynid.fit import Fit
from dynid.mechanism.parameters import Parameter
from dynid.problem import Problem
from dynid.projection.projection import System
from dynid.projection.wrench import WrenchRows
from dynid.regressor.layout import ABSENT
from dynid.statistics.assemble import EstimateParts, with_spread
from dynid.statistics.essential import restrict
from dynid.statistics.sandwich import Spread

_METHOD = "rounding"
_EXPLAINED = 2.0  # times: residuals below this many of what rounding leaves are rounding
_FEW = ("few-blocks", "from-one-block")  # warnings of a jackknife that do not apply to rounding


def with_rounding(parts: EstimateParts, fit: Fit) -> EstimateParts:
    """The estimate with deviations that rounding explains, or no smaller than rounding makes them.

    Where the residuals are what printing leaves, so are the errors of the parameters, and their covariance
    is known without the residuals. Else residuals are used, but sigma is never below that of rounding.

    Args:
        parts: With the uncertainty from the residuals.
        fit: Its fit; an uncertainty other than `cluster` is not changed.
    """
    problem = fit.problem
    if fit.experiment.uncertainty.method != "cluster":
        return parts
    sources = [source for source in problem.sources if isinstance(source, WrenchRows)]
    data, used = fit.data, parts.solution
    kept = [k for k, parameter in enumerate(parts.parameters) if parameter.essential]
    system = data.system if len(kept) == len(parts.parameters) else restrict(data.system, kept)
    _, root, _ = least_squares(system.factor(used.weights))
    rounded = rounding(sources, _places(problem, system), data.S[:, kept], fit.linear_chi, root, used.weights)
    spread = _spread(parts, rounded, system, used.residual_norms)
    dropped = set(parts.spread.notices) - set(spread.notices)
    warnings = tuple(warning for warning in parts.warnings if warning not in dropped)
    return replace(with_spread(parts, spread), warnings=warnings)


def _places(problem: Problem, system: System) -> list[Mapping[int, int]]:
    """Group of each row of each table."""
    number = {(group.name, group.log): i for i, group in enumerate(system.groups)}
    names = problem.directions.group_names
    return [{k: number[name, log.name] for k, name in enumerate(names)} for log in problem.logs]


def _spread(parts: EstimateParts, rounded: Rounding, system: System, residuals: Float[Array, "g"]) -> Spread:
    ratio = _ratio(rounded, system, residuals)
    before, draws = parts.spread, len(rounded.moves)
    if ratio < _EXPLAINED:
        grown = max(1.0, ratio)
        words = f"{_METHOD}: effect of rounding every number of the table to its last digit"
        words += f" ({draws} draws); the residuals are {ratio:.2g} times the effect of rounding"
        dof = np.full(len(before.dof), float(draws))
        notices = tuple(notice for notice in before.notices if notice.code not in _FEW)
        facts = {"method": _METHOD, "draws": draws, "ratio": ratio}
        methods = (_METHOD,) * len(dof)
        return Spread(grown**2 * rounded.covariance, dof, methods, words, facts, notices)
    variances, least = np.diag(before.covariance), np.diag(rounded.covariance)
    larger = least > variances
    factor = np.sqrt(
        np.divide(np.maximum(variances, least), variances, out=np.ones_like(variances), where=variances > 0)
    )
    covariance = before.covariance * np.outer(factor, factor)
    np.fill_diagonal(covariance, np.maximum(variances, least))
    methods = tuple(_METHOD if is_larger else m for is_larger, m in zip(larger, before.methods, strict=True))
    words = f"{before.words}; the residuals are {ratio:.2g} times the effect of rounding in the table;"
    words += f" no sigma is below that of rounding ({int(larger.sum())} of {len(variances)} raised)"
    dof = np.where(larger, float(draws), before.dof)
    return replace(before, covariance=covariance, dof=dof, methods=methods, words=words)


def _ratio(rounded: Rounding, system: System, residuals: Float[Array, "g"]) -> float:
    """Residuals over what rounding leaves, the median over groups."""
    rows = np.array([group.n_rows for group in system.groups], float)
    spare = 1.0 - len(system.parameters) / rows.sum()
    rms = residuals / np.sqrt(rows * max(spare, 1.0 / rows.sum()))
    known = rounded.residual > 0
    return float(np.median(rms[known] / rounded.residual[known])) if known.any() else np.inf


_SEED = 20200311
# Draws for the covariance of a small table, and what a long one may cost: draws times instants.
_SPARE_DRAWS, _MOST_WORK, _FEWEST = 48, 60_000, 6


@dataclass(frozen=True, eq=False)
class Rounding:
    """Errors of estimate and rows by rounding alone.

    Attributes:
        moves: How each draw moves the estimate, shape (d, v), SI.
        residual: Rms that it leaves in the rows of each group, shape (g,), unit of the group.
    """

    moves: Float[Array, "d v"]
    residual: Float[Array, "g"]

    @property
    def covariance(self) -> Float[Array, "v v"]:
        """C_chi of rounding, shape (v, v), SI."""
        return np.asarray(self.moves.T @ self.moves / len(self.moves))


def rounding(
    sources: Sequence[WrenchRows],
    places: Sequence[Mapping[int, int]],
    S: Float[Array, "p v"],
    chi: Float[Array, "p"],
    root: Float[Array, "v v"],
    weights: Float[Array, "g"],
) -> Rounding:
    """Draw disturbed tables and follow what they do to a weighted least-squares estimate.

    Args:
        sources: Equations of the tables.
        places: Of each source: row -> number of its group.
        S: Standard columns of each parameter, shape (p, v).
        chi: Standard parameters of the estimate, shape (p,), SI.
        root: R^-1 of the weighted rows, shape (v, v), SI.
        weights: Of the groups, shape (g,).
    """
    rng = np.random.default_rng(_SEED)
    instants = sum(len(source.table.t) for source in sources)
    draws = int(np.clip(_MOST_WORK // instants, _FEWEST, 3 * S.shape[1] + _SPARE_DRAWS))
    scores = np.zeros((len(chi), draws))
    squares, counts = np.zeros(len(weights)), np.zeros(len(weights))
    for source, place in zip(sources, places, strict=True):
        layout = source.layout
        group = np.array([place[k] for k in range(len(layout.start) - 1)])
        factors = layout.coefficients(chi)
        for drawn, nominal, change in changes(source, rng, draws):
            e, n, d = change.shape
            moved = layout.sums(change.reshape(e, -1), factors).reshape(-1, n, d)
            rho = change[layout.start[1:] - 1] - moved
            for k, (start, end) in enumerate(pairwise(layout.start)):  # W^T rho, row by row
                columns = layout.columns[start : end - 1]
                scores[columns, drawn] += weights[group[k]] ** 2 * (nominal[start : end - 1] @ rho[k])
            np.add.at(squares, group, np.sum(rho**2, axis=(1, 2)))
            np.add.at(counts, group, n * d)
    return Rounding(scores.T @ S @ root @ root.T, np.sqrt(squares / np.maximum(counts, 1.0)))


_DRAWS = 3
_TILE = 8192  # instants and draws together
# Of the largest direction: motion about the others is what rounding makes of it.
_STILL = 1e-5
_AXES = ("x", "y", "z")


def column_noise(sources: Sequence[WrenchRows]) -> Float[Array, "p"]:
    """Norm of what rounding alone leaves in each column of W over all tables, shape (p,), unit of the column.

    Found by moving every number of the tables within its last figure.
    """
    squares = np.zeros(len(sources[0].parameters))
    rng = np.random.default_rng(_SEED)
    for source in sources:
        known = source.layout.columns != ABSENT
        for _, _, change in changes(source, rng, _DRAWS):
            moved = np.sum(change**2, axis=(1, 2)) / _DRAWS
            np.add.at(squares, source.layout.columns[known], moved[known])
    return np.sqrt(squares)


def changes(
    source: WrenchRows, rng: np.random.Generator, draws: int
) -> Iterator[tuple[slice, Float[Array, "e n"], Float[Array, "e n d"]]]:
    """Some draws, packed entries of some instants, and how these draws change them.

    Args:
        source: Equations of a table.
        rng: Source of the disturbances.
        draws: How many disturbed tables.
    """
    n = len(source.table.t)
    copies = max(1, min(draws, _TILE // n))
    for first in range(0, draws, copies):
        d = min(copies, draws - first)
        other, tile = source.like(source.table.disturbed(rng, d)), max(1, _TILE // d)
        for at in range(0, n, tile):
            stop = min(at + tile, n)
            ((_, nominal, _),) = source.rows(at, stop, tile)
            ((_, moved, _),) = other.rows(at * d, stop * d, tile * d)
            yield (
                slice(first, first + d),
                nominal,
                moved.reshape(len(nominal), stop - at, d) - nominal[:, :, None],
            )


def hidden_parameters(sources: Sequence[WrenchRows]) -> dict[str, str]:
    """Parameter -> why the motion of its body hides it, for bodies that do not turn about all directions."""
    reasons: dict[str, str] = {}
    for parameter in sources[0].parameters:
        reason = _reason(sources, parameter)
        if reason:
            reasons[parameter.name] = reason
    return reasons


def _reason(sources: Sequence[WrenchRows], parameter: Parameter) -> str:
    payloads = sources[0].mechanism.payloads
    body = payloads[parameter.owner].body if parameter.owner in payloads else parameter.owner
    number = sources[0].table.bodies.index(body)
    turning = np.concatenate([_turning(source, number) for source in sources])
    size, directions = np.linalg.svd(turning, full_matrices=False)[1:]
    about = [directions[i] for i in range(len(size)) if size[i] > _STILL * max(size[0], np.finfo(float).tiny)]
    if not about:
        return f"{body} does not rotate in these data" if parameter.symbol != "M" else ""
    if len(about) > 1:
        return ""
    upright = " (vertical)" if all(_is_vertical(source, number, about[0]) for source in sources) else ""
    axis = f"{body} rotates about one axis only, {_spoken(about[0])}{upright}"
    if parameter.symbol in ("MX", "MY", "MZ"):
        return f"{axis}, and the position of the centre of mass along this axis has no effect"
    if parameter.symbol == "M":
        return ""
    return f"{axis}: {parameter.symbol} has an effect only if the body also rotates about another axis"


def _turning(source: WrenchRows, body: int) -> Float[Array, "r 3"]:
    """Angular velocities and accelerations of a body at the instants that count."""
    fine = source.moved.fine[:, body]
    return np.concatenate([source.moved.omega[fine, body], source.moved.alpha[fine, body]])


def _is_vertical(source: WrenchRows, body: int, axis: Float[Array, "3"]) -> bool:
    """Whether a direction of a body stays along gravity."""
    g = source.mechanism.gravity
    away = np.cross(source.moved.R[source.moved.fine[:, body], body] @ axis, g)
    return bool(np.linalg.norm(g) > 0 and np.max(np.abs(away), initial=0.0) < _STILL * np.linalg.norm(g))


def _spoken(axis: Float[Array, "3"]) -> str:
    """`its x axis`, or the direction in numbers."""
    best = int(np.argmax(np.abs(axis)))
    if abs(axis[best]) > 1.0 - _STILL:
        return f"its {_AXES[best]} axis"
    return (
        "along ("
        + ", ".join(f"{component:.3g}" for component in axis * np.sign(axis[best]))
        + ") in its frame"
    )
