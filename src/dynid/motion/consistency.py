"""Measured velocities against positions: units, scale, delay."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.differentiate import differentiate
from dynid.motion.log import Log

RATIO_TOLERANCE = 0.05
WARN, REFUSE = 0.2, 0.5  # relative rms difference
_EXCITED = 0.05  # of the fastest coordinate; slower coordinates cannot be compared
_STILL = 1e-4  # rad/s or m/s, 20 degrees an hour: a log without motion contains only noise
_HINTS = {
    57.29578: "velocity in degrees, position in radians",
    1 / 57.29578: "position in degrees, velocity in radians",
    1000.0: "velocity in mm/s or time in ms",
    1e-3: "position in mm, or time in units 1000 times shorter",
    9.549297: "velocity in rpm",
    -1.0: "the sign of one of them",
}


def check_velocity(
    log: Log, q: Float[Array, "n m"], dq: Float[Array, "n m"], derivative: str, edge: int
) -> list[Notice]:
    """Compare low-passed measured rates with the derivative of equally low-passed positions.

    Noise of the derivative makes <own, measured> / <own, own> too small, noise of the measured
    rates makes <measured, measured> / <own, measured> too large: the true ratio lies between them.

    Raises:
        InputError: The ratio of an excited coordinate is not 1 within 5 %, or the difference
            exceeds half of the motion.

    Returns:
        A notice for coordinates that differ by more than 20 %.
    """
    inner = slice(edge, len(q) - edge) if len(q) > 4 * edge else slice(None)
    own = differentiate(q, log.dt, derivative)[inner]
    measured = dq[inner]
    size = np.sqrt(np.mean(own**2, axis=0))
    other = np.sqrt(np.mean(measured**2, axis=0))
    # A coordinate at rest is not tested: any small number keeps its ratios finite.
    reference = np.maximum(size, 1e-30)
    common = np.mean(own * measured, axis=0)
    ratio = _nearest_ratio(common / reference**2, other**2 / np.where(common == 0.0, 1e-60, common))
    difference = np.sqrt(np.mean((measured - own) ** 2, axis=0)) / reference
    excited = (size > max(_EXCITED * np.max(size), _STILL)) | (other > max(_EXCITED * np.max(other), _STILL))
    doubtful = np.flatnonzero(excited & ((np.abs(ratio - 1.0) > RATIO_TOLERANCE) | (difference > WARN)))
    if len(doubtful) == 0:
        return []
    for i in doubtful:
        if abs(ratio[i] - 1.0) > RATIO_TOLERANCE or difference[i] > REFUSE:
            raise _refusal(log, int(i), float(ratio[i]), float(difference[i]))
    shown = ", ".join(f"{log.position_names[i]} {100 * difference[i]:.0f} %" for i in doubtful)
    return [notice("velocity-differs", log=log.name, shown=shown)]


def _nearest_ratio(one: Float[Array, "m"], two: Float[Array, "m"]) -> Float[Array, "m"]:
    """The value between both bounds that is nearest to 1."""
    return np.asarray(np.clip(1.0, np.minimum(one, two), np.maximum(one, two)))


def _refusal(log: Log, i: int, ratio: float, difference: float) -> InputError:
    name = log.position_names[i]
    hint = next((text for value, text in _HINTS.items() if abs(ratio / value - 1.0) < 0.1), "")
    return InputError(
        f"measured velocity of '{name}' is {ratio:.4g} times the derivative of its position"
        f" (rms difference {100 * difference:.0f} %)" + (f": it looks like {hint}" if hint else ""),
        file=log.file,
        place=f"column {log.mapping.get(f'dq_{i + 1}', f'dq_{i + 1}')}",
        remedy="give unit or scale under `columns:`; if the positions are right, filter: {velocity: derived}",
    )
