"""Essential parameters: those that the data determine well enough to keep.

The parameter of largest relative sigma is removed and the rest fitted again, as long as the
rule requires it and the residual of the full model grows by less than one percent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import solve_weighted
from dynid.estimator.ols import least_squares
from dynid.estimator.solution import Solution
from dynid.projection.factor import Factor
from dynid.projection.projection import System
from dynid.statistics.clusters import Clusters
from dynid.statistics.sandwich import calibrated
from dynid.statistics.uncertainty import EssentialRule, relative_percent

Where = Callable[[str], dict[str, str | None]]
# Residuals below this part of the measured norm are rounding: their growth has no meaning.
_EXACT_PART = 1e-9


@dataclass(frozen=True, eq=False)
class Reduced:
    """A fit of some of the parameters.

    Attributes:
        kept: Indices of the parameters that were fitted, in system order.
        removed: Indices of the others, in the order of their removal.
        solution: Over the kept parameters.
        growth_percent: Growth of the weighted residual norm over the full model.
    """

    kept: tuple[int, ...]
    removed: tuple[int, ...]
    solution: Solution
    growth_percent: float
    notices: tuple[Notice, ...] = ()


def essential_parameters(
    system: System, solution: Solution, rule: EssentialRule, clusters: Clusters | None = None
) -> Reduced:
    """Remove poorly determined parameters, one at a time, from the weighted factor.

    The weights stay those of the full model: with new weights the residual would be
    one by definition, and the guard blind.

    Args:
        system: What was solved.
        solution: Over all its parameters.
        rule: When to stop.
        clusters: Of that solution; sigma is then the one reported, else that of white noise.
    """
    factor = system.factor(solution.weights)
    limit = _floor(solution) * (1.0 + rule.growth_percent / 100.0)
    kept, removed = list(range(len(solution.chi))), list[int]()
    while len(kept) > 1:
        relative = _relative_sigmas(factor, kept, clusters, solution.chi, rule.influence_percent)
        if not rule.asks_removal(relative):
            break
        worst = kept[int(np.argmax(relative))]
        rest = [i for i in kept if i != worst]
        if least_squares(_select(factor, rest))[2] > limit:
            break
        kept = rest
        removed.append(worst)
    return _reduced(system, solution, kept, removed)


def keep_parameters(
    system: System, solution: Solution, keep: Sequence[str], where: Where | None = None
) -> Reduced:
    """Fit exactly the parameters named (or matched by globs), with the weights of the full model.

    Args:
        system: What was solved.
        solution: Over all its parameters.
        keep: Names or globs.
        where: File and place of an entry, for errors.
    """
    names = [parameter.name for parameter in system.parameters]
    chosen: set[int] = set()
    for entry in keep:
        hits = [i for i, name in enumerate(names) if _matches(name, entry)]
        if not hits:
            raise InputError(
                f"keep: no base parameter of these data is called '{entry}'" + nearest(entry, names),
                remedy="'dynid info' lists the base parameters",
                **(where(entry) if where else {}),
            )
        chosen.update(hits)
    kept = sorted(chosen)
    if not kept:
        raise InputError("keep: the list is empty", remedy="name at least one base parameter")
    return _reduced(system, solution, kept, [i for i in range(len(names)) if i not in chosen])


def _matches(name: str, entry: str) -> bool:
    """By name or glob, with or without the `_R` of a grouped parameter."""
    plain = name.removesuffix("_R")
    return any(test(spelling, entry) for spelling in (name, plain) for test in _TESTS)


_TESTS: tuple[Callable[[str, str], bool], ...] = (str.__eq__, fnmatchcase)


def _relative_sigmas(
    factor: Factor,
    kept: Sequence[int],
    clusters: Clusters | None,
    full: Float[Array, "p"],
    influence_percent: float | None = None,
) -> Float[Array, "kept"]:
    part = _select(factor, kept)
    chi, root, residual_norm = least_squares(part)
    covariance = residual_norm**2 / (part.n_rows - len(kept)) * (root @ root.T)
    if clusters is not None:
        spread, _ = calibrated(clusters.restricted(kept, full)[0])
        white, variance = np.diag(covariance), np.diag(spread.covariance)
        covariance = np.diag(np.where(spread.alone, np.maximum(variance, white), variance))
    if influence_percent is not None:
        columns = np.maximum(np.linalg.norm(part.W, axis=0), np.finfo(float).tiny)
        least = influence_percent / 100.0 * np.linalg.norm(part.Y) / columns
        chi = np.copysign(np.maximum(np.abs(chi), least), chi)
    return relative_percent(chi, covariance)


def _select(factor: Factor, kept: Sequence[int]) -> Factor:
    return Factor(np.column_stack([factor.W[:, list(kept)], factor.Y]), factor.n_rows)


def _floor(solution: Solution) -> float:
    return max(solution.residual_norm, _EXACT_PART * solution.measured_norm)


def _reduced(system: System, full: Solution, kept: Sequence[int], removed: Sequence[int]) -> Reduced:
    if not removed:
        return Reduced(tuple(kept), (), full, 0.0)
    on_weights = tuple(remark for remark in full.notices if remark.code == "weights-not-converged")
    solution = solve_weighted(
        restrict(system, kept),
        full.weights,
        iterations=full.iterations,
        status=full.status,
        notices=on_weights,
    )
    growth = 100.0 * (solution.residual_norm / max(_floor(full), np.finfo(float).tiny) - 1.0)
    names = [system.parameters[i].name for i in removed]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    bias = notice("essential-bias", names=shown, growth=growth)
    return Reduced(tuple(kept), tuple(removed), solution, growth, (bias,))


def restrict(system: System, kept: Sequence[int]) -> System:
    """The equations of the parameters kept; the others are zero."""
    place = {i: k for k, i in enumerate(kept)}
    groups = []
    for group in system.groups:
        places = [k for k, i in enumerate(group.columns) if int(i) in place]
        columns = np.array([place[int(group.columns[k])] for k in places], dtype=int)
        blocks = tuple(_select(block, places) for block in group.blocks)
        groups.append(replace(group, columns=columns, blocks=blocks))
    return System(tuple(system.parameters[i] for i in kept), tuple(groups))
