"""Effect of rounding on the equations of a table, and parameters that its motion does not excite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.parameters import Parameter
from dynid.projection.wrench import WrenchRows
from dynid.regressor.layout import ABSENT

_SEED = 20200311
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
