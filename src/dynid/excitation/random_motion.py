"""Random exciting motions: of some tens of draws, the one with the best conditioned base regressor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from dynid.base.rank import independent_columns
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.excitation.closed import ClosedMotion, random_closed
from dynid.excitation.fourier import FourierMotion, Limits, at_rest, scaled_into
from dynid.excitation.ranking import SAMPLES, scaled_condition, speed_bound, symmetric_range
from dynid.excitation.series import Series
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import considered_order, parameter_table
from dynid.projection.inverse import inverse_directions
from dynid.regressor.regressor import tree_matrix

_STATES = 64
_STATES_SEED = 7


def random_motion(
    mechanism: Mechanism,
    seed: int = 0,
    *,
    harmonics: int = 5,
    frequency: float = 0.1,
    draws: int = 30,
    margin: float = 0.02,
    joints: tuple[str, ...] | None = None,
) -> FourierMotion | ClosedMotion:
    """A random exciting motion of any robot within its limits: see `random_fourier`, `random_closed`.

    `joints` of a closed robot are those that follow the series.
    """
    if mechanism.is_closed:
        _check_series(harmonics, frequency, draws)
        return random_closed(
            mechanism,
            seed,
            harmonics=harmonics,
            frequency=frequency,
            draws=draws,
            margin=margin,
            joints=joints,
        )
    return random_fourier(
        mechanism, seed=seed, harmonics=harmonics, frequency=frequency, draws=draws, margin=margin
    )


def random_fourier(
    mechanism: Mechanism,
    limits: Limits | None = None,
    seed: int = 0,
    *,
    harmonics: int = 5,
    frequency: float = 0.1,
    draws: int = 30,
    margin: float = 0.02,
) -> FourierMotion:
    """A random motion within the limits, the best conditioned of `draws`.

    Args:
        mechanism: The robot; its measured joints move.
        limits: Per measured coordinate; default those of the robot file.
        seed: Of the draws; the same seed gives the same motion.
        harmonics: Terms of the series; at least 3, so that it can begin and end at rest.
        frequency: Of the first harmonic, in [Hz].
        draws: Motions drawn and compared.
        margin: Unused share of every limit, dimensionless.
    """
    _check_series(harmonics, frequency, draws)
    check_joints(mechanism)
    bounds = robot_limits(mechanism) if limits is None else limits
    shape = (harmonics, len(bounds.low))
    rng = np.random.default_rng(seed)
    candidates = [
        scaled_into(at_rest(frequency, rng.normal(size=shape), rng.normal(size=shape)), bounds, margin)
        for _ in range(draws)
    ]
    if draws == 1:
        return candidates[0]
    condition = regressor_condition(mechanism)
    return min(candidates, key=condition)


def regressor_condition(mechanism: Mechanism) -> Callable[[Series], float]:
    """A function from a motion to the condition number of its base regressor, columns scaled.

    The base columns are chosen once, at random states, in the order used everywhere for names.
    """
    coordinates = coordinate_map(mechanism)
    N = inverse_directions(mechanism).N

    def regressor(*state: Float[Array, "n m"]) -> Float[Array, "r p"]:
        W = tree_matrix(mechanism, *coordinates.states(*state), N)
        return W.reshape(-1, W.shape[-1])

    rng = np.random.default_rng(_STATES_SEED)
    m = len(mechanism.measured_positions)
    states = [scale * rng.uniform(-1, 1, (_STATES, m)) for scale in (2.0, 2.0, 5.0)]
    order = considered_order(mechanism, parameter_table(mechanism))
    kept = list(independent_columns(regressor(*states), order).kept)

    def condition(motion: Series) -> float:
        t = np.arange(SAMPLES) / SAMPLES * motion.period
        return scaled_condition(regressor(motion.q(t), motion.dq(t), motion.ddq(t))[:, kept])

    return condition


def robot_limits(mechanism: Mechanism) -> Limits:
    """Limits of the robot file for the measured coordinates; a missing position range is an error."""
    names = mechanism.measured_positions
    ranges, speeds, accelerations = [], [], []
    for name in names:
        own = mechanism.limits.get(name, {})
        if "q" not in own:
            raise InputError(
                f"joint '{name}' has no position limits, so no motion can be scaled to them",
                file=mechanism.file,
                place="limits",
                remedy=f"add  limits: {{{name}: {{q: [-1, 1], dq: 2, ddq: 10}}}}  or give limits",
            )
        ranges.append(symmetric_range(own["q"]))
        speeds.append(speed_bound(own.get("dq", np.inf)))
        accelerations.append(speed_bound(own.get("ddq", np.inf)))
    low, high = np.array(ranges, float).T
    return Limits(low, high, np.array(speeds, float), np.array(accelerations, float))


def _check_series(harmonics: int, frequency: float, draws: int) -> None:
    if harmonics < 3:
        raise InputError(f"{harmonics} harmonics cannot begin and end at rest", remedy="use 3 or more")
    if not frequency > 0.0 or draws < 1:
        raise InputError(f"frequency {frequency} Hz and {draws} draws: both must be positive")


def check_joints(mechanism: Mechanism) -> None:
    """Reject joints that cannot follow a series per coordinate."""
    turning = [joint.name for joint in mechanism.joints if joint.has_quaternion]
    if turning:
        raise InputError(
            f"joint '{turning[0]}' is described by a quaternion, which cannot follow a Fourier series",
            file=mechanism.file,
            remedy="use a robot with revolute, prismatic and universal joints",
        )
