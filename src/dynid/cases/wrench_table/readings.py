"""Other conventions of a table: if one of them balances the bodies far better, the table was misread.

Wrenches, rates and accelerations may be given in world or in body axes, accelerations with or without
gravity, moments about other points than the joints. Each convention has its own least-squares fit; with the
right one the residual is noise only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.motion.body_table import BodyTable
from dynid.motion.settings import BODY, COM, JOINT, KINEMATIC, POINTS, PROPER, WORLD, WrenchSettings
from dynid.projection.wrench import WrenchRows
from dynid.projection.wrench_motion import levers

_BETTER = 10.0  # times: not by chance if there are more rows than parameters
_NEGLIGIBLE = 1e-8  # of what is balanced: rounding of floats
_CLOSE = 1e-4  # of what is balanced: moments about a wrong point leave far more
_MOST = 300  # instants; more do not improve the test


@dataclass(frozen=True)
class Reading:
    """One way to read a table.

    Attributes:
        settings: That read it so.
        changes: What differs from the way in use, as options of the experiment.
        words: The same in words.
        residual: What its balance leaves, as a part of what is balanced.
    """

    settings: WrenchSettings
    changes: tuple[str, ...]
    words: tuple[str, ...]
    residual: float


def check_reading(source: WrenchRows) -> float:
    """What the balance of the bodies leaves of their wrenches, as a part of them.

    Raises:
        InputError: Another reading balances them far better; with both residuals and the option for it.
    """
    as_read = balance_residual(source.like(_thinned(source)))
    if as_read is None or as_read < _NEGLIGIBLE:
        return 0.0
    candidates = [candidate for candidate in readings(source, points=as_read > _CLOSE) if candidate.changes]
    least = min((candidate.residual for candidate in candidates), default=np.inf)
    if least * _BETTER > as_read:
        return as_read
    # Of readings that do about as well the one that changes least is meant.
    best = min(
        (candidate for candidate in candidates if candidate.residual < 2.0 * least + _NEGLIGIBLE),
        key=lambda o: len(o.changes),
    )
    raise InputError(
        f"the bodies do not balance with the conventions used ({100 * as_read:.2g} % unexplained), but they"
        f" do with {' and '.join(best.words)} ({100 * best.residual:.2g} % unexplained)",
        file=source.table.file,
        place="wrench",
        remedy=f"if this is true, set wrench: {{{', '.join(best.changes)}}}",
    )


def readings(source: WrenchRows, points: bool = True) -> Iterator[Reading]:
    """All ways to read the table that its columns leave open, each with its residual.

    Args:
        points: Moments may be about other points, too.
    """
    table = _thinned(source)
    for axes, kind, at in _ways(source, points):
        settings = source.settings.changed(axes=axes, acceleration=kind, at=at)
        changed = {w: axes[w] for w in axes if axes[w] != source.settings.axes_of(w)}
        changes = [f"axes: {{{', '.join(f'{w}: {a}' for w, a in changed.items())}}}"] if changed else []
        words = [f"{quantity} in {frame} axes" for quantity, frame in changed.items()]
        if kind != source.settings.acceleration:
            changes.append(f"acceleration: {kind}")
            words.append(f"gravity {'' if kind == PROPER else 'not '}subtracted from accelerations")
        if at != source.settings.at:
            changes.append(f"at: {at}")
            words.append(f"moments about {POINTS[at]}")
        residual = balance_residual(source.like(table, settings))
        if residual is not None:
            yield Reading(settings, tuple(changes), tuple(words), residual)


def _ways(source: WrenchRows, points: bool) -> Iterator[tuple[dict[str, str], str, str]]:
    """Axes of everything, kind of acceleration and point of moments, where the table leaves them open."""
    given, both = source.table.signals, (WORLD, BODY)
    moving = bool({"acceleration", "centroid"} & set(given))
    rates = both if {"omega", "alpha"} & set(given) else (source.settings.axes_of("rates"),)
    accelerations = both if moving else (source.settings.axes_of("acceleration"),)
    kinds = (KINEMATIC, PROPER) if moving else (source.settings.acceleration,)
    at = _points(source) if points else (source.settings.at,)
    for wrench, rate, acceleration, kind, point in product(both, rates, accelerations, kinds, at):
        yield {"wrench": wrench, "rates": rate, "acceleration": acceleration}, kind, point


def _points(source: WrenchRows) -> tuple[str, ...]:
    """Points that the moments may be about: those that are known, and not another one for all bodies."""
    distinct: list[str] = [source.settings.at]
    lever: dict[str, Array] = {}
    for at in (JOINT, BODY, COM, WORLD):
        settings = source.settings.changed(at=at)
        try:
            arm = levers(source.mechanism, source.table, source.moved, source.points.inner, settings)
        except InputError:
            continue  # nobody knows where that is
        lever[at] = np.nan_to_num(arm)
    for at, arm in lever.items():
        if not any(np.allclose(arm, lever[other], atol=1e-9) for other in distinct if other in lever):
            distinct.append(at)
    return tuple(distinct)


def _thinned(source: WrenchRows) -> BodyTable:
    """Some hundred instants of a long table; neighbours where something is derived from them."""
    n = len(source.table.t)
    if n <= _MOST:
        return source.table
    derived = any("differentiated" in words for words in source.choices.values())
    chosen = np.arange(_MOST) if derived else np.unique(np.linspace(0, n - 1, _MOST).round().astype(int))
    return source.table.picked(chosen)


def balance_residual(source: WrenchRows) -> float | None:
    """What the best parameters leave of the balances, forces and moments of each body on their own scale.

    None if there are too few rows.
    """
    left = size = 0.0
    rows = columns = 0
    for _, packed, weights in source.rows(0, len(source.table.t), len(source.table.t)):
        for k, block in enumerate(source.blocks):
            use = weights[6 * k] > 0
            W, Y = _dense(source, packed, k, len(block.columns))
            W, Y = W[:, use], Y[:, use]
            scale = 1.0 / np.maximum(np.repeat(_scales(source, block.body), 3), np.finfo(float).tiny)
            A, y = (scale[:, None, None] * W).reshape(-1, W.shape[2]), (scale[:, None] * Y).reshape(-1)
            chi = np.linalg.lstsq(A, y, rcond=1e-10)[0]
            left += float(np.sum((y - A @ chi) ** 2))
            size += float(np.sum(y**2))
            rows, columns = rows + len(y), columns + W.shape[2]
    if rows < 2 * columns or size == 0.0:
        return None
    return float(np.sqrt(left / size))


def _dense(
    source: WrenchRows, packed: Float[Array, "e n"], k: int, count: int
) -> tuple[Float[Array, "6 n c"], Float[Array, "6 n"]]:
    """Columns and measured side of the six rows of a body."""
    start = int(source.layout.start[6 * k])
    whole = packed[start : start + 6 * (count + 1)].reshape(6, count + 1, -1)
    return np.moveaxis(whole[:, :-1], 1, 2), whole[:, -1]


def _scales(source: WrenchRows, body: int) -> tuple[float, float]:
    """Sizes of force and moment at a body's inner joint; they do not depend on the axes."""
    force, moment = source.forces[:, body], source.moments[:, body]
    known = np.all(np.isfinite(force), axis=1)
    sizes = [float(np.sqrt(np.mean(np.sum(x[known] ** 2, axis=1)))) for x in (force, moment)]
    return sizes[0], sizes[1]
