"""Base to standard: a full set of physically consistent bodies with these base parameters.

What the data do not determine follows the prior. An entry is `from: data` if the data reduce its
prior variance by more than half, else `from: prior`.

Are these base parameters physically consistent? Tested for each result and every estimator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.common.distributions import chi2_tail
from dynid.common.notices import Notice, eased, notice
from dynid.estimator.consistent import Consistent, physical_distance
from dynid.estimator.semidefinite import SOLVED, TOLERANCE
from dynid.estimator.settings import Consistency
from dynid.estimator.standard_space import StandardSpace

FROM_DATA = 0.5
_PLACEHOLDERS = 3  # so many equal inertials are no measurement


@dataclass(frozen=True, eq=False)
class StandardSet:
    """The standard parameters of a result.

    Attributes:
        nearest: The consistent set, or why there is none.
        entries: name, unit, value, from (`data` or `prior`) and share of the data, in file order.
        choices: How it was found, in words.
        is_estimate: Whether it is the estimate itself (of the consistent estimator), not one derived from it.
    """

    nearest: Consistent
    entries: tuple[Mapping[str, Any], ...]
    choices: Mapping[str, str]
    notices: tuple[Notice, ...]
    is_estimate: bool = False

    @property
    def failure(self) -> str:
        """Why the set does not exist; empty if it does."""
        if self.nearest.status == SOLVED:
            return ""
        return f"no physically consistent set of bodies: {self.nearest.reason}"


def standard_set(
    space: StandardSpace, consistent_set: Consistent, options: Consistency, given: Collection[str] = ()
) -> StandardSet:
    """The table of a consistent set, with everything its reader must know.

    Args:
        given: Parameters of a result that are sums over several bodies: they are not bodies themselves.
    """
    entries: tuple[Mapping[str, Any], ...] = ()
    if consistent_set.status == SOLVED:
        entries = tuple(
            {
                "name": parameter.name,
                "unit": parameter.unit,
                "value": float(value),
                "from": "data" if share > FROM_DATA else "prior",
                "share": round(float(share), 4),
            }
            for parameter, value, share in zip(
                space.parameters, consistent_set.chi, consistent_set.share, strict=True
            )
            if parameter.name not in given
        )
    measured = sum(entry["from"] == "data" for entry in entries)
    words = f"{consistent_set.status} in {consistent_set.iterations} iterations (tolerance {TOLERANCE:g})"
    if entries:
        words += f"; {measured} of {len(entries)} standard parameters from data"
        words += "" if measured == len(entries) else ", the others from the prior"
    distance = f"{options.prior} distance, prior uncertain by a factor of {options.spread:g}"
    return StandardSet(
        consistent_set,
        entries,
        {"standard set": words, "prior": distance},
        (*_priors(space, consistent_set), *_bounds(consistent_set)),
    )


def _bounds(fit: Consistent) -> tuple[Notice, ...]:
    """Parameters at a bound: their sigma does not account for it."""
    notices = []
    if fit.at_bound:
        notices.append(notice("at-bound", names=_listed(fit.at_bound)))
    if fit.at_edge:
        notices.append(notice("at-edge", names=_listed(fit.at_edge)))
    return tuple(notices)


def _priors(space: StandardSpace, fit: Consistent | None = None) -> tuple[Notice, ...]:
    """Bodies that follow no description, or one that nobody measured."""
    notices = []
    without = [
        body.name
        for body in space.bodies
        if not body.given and not _known(space, body.columns) and not _determined(fit, body.columns)
    ]
    if without:
        notices.append(notice("generic-prior", names=_listed(without)))
    given = [body for body in space.bodies if body.given and body.prior is not None]
    first = given[0] if given else None
    if first is not None and len(given) >= _PLACEHOLDERS:
        same = all(np.allclose(item.prior, first.prior, rtol=1e-9, atol=0) for item in given)  # type: ignore[arg-type]
        if same:
            notices.append(notice("placeholder-prior", count=len(given), mass=first.mass))
    return tuple(notices)


def _determined(fit: Consistent | None, columns: Sequence[int]) -> bool:
    """Whether the data determine every entry of a body, so that its prior has no effect."""
    used = [i for i in columns if i >= 0]
    return fit is not None and fit.status == SOLVED and bool(np.all(fit.share[used] > FROM_DATA))


def _known(space: StandardSpace, columns: Sequence[int]) -> bool:
    """Whether every entry a body has is a known value."""
    return not any(np.any(space.T[i] != 0) for i in columns if i >= 0)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


_UNLIKELY = 1e-3  # significance level
# Sigma, rms: model errors of good real arms give 1 to 3, exchanged payloads and wrong units hundreds.
_IMPOSSIBLE = 10.0
_MOST_PARAMETERS = 1000  # beyond, the test would outlast the identification


def physical_test(space: StandardSpace) -> tuple[Notice, ...]:
    """A warning if these base parameters are significantly inconsistent physically.

    The distance |U (chi_physical - chi_hat)| squared to the nearest physical set is at most
    chi-squared with as many degrees of freedom as parameters, if the truth is physical.
    """
    if not space.bodies or len(space.parameters) > _MOST_PARAMETERS:
        return ()
    distance = physical_distance(space)
    if distance is None or chi2_tail(len(space.estimate), distance**2) > _UNLIKELY:
        return ()
    rms = distance / np.sqrt(len(space.estimate))
    remark = notice("not-physical", rms=rms, count=len(space.estimate), change={"estimator": "consistent"})
    return (remark if rms > _IMPOSSIBLE else eased(remark),)
