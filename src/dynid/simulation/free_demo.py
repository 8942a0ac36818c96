"""Built-in experiments of robots that swing on locked cables: random releases within their limits.

truth:   as in any demo (see `demo_file`)
free:    motions, validation (how many of each), rate [Hz], duration [s] of each,
         position_sigma [m] and angle_sigma [rad] of the markers' noise, seed
"""

from __future__ import annotations

import numpy as np

from dynid.common.errors import NoResultError
from dynid.excitation.free_motion import free_limits, simulate_free_motions
from dynid.excitation.releases import Releases, Releasing
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.robots.demo_file import FreeDemo

_ROUNDS = 6  # attempts with smaller swings if the limits are violated


def free_logs(mechanism: Mechanism, demo: FreeDemo, seed: int) -> tuple[Log, Log]:
    """A log for the fit and one for validation: one segment per motion, noise on the measured pose."""
    releases = random_releases(mechanism, demo, seed)
    seeds = np.random.SeedSequence(seed).generate_state(3)
    parts = {
        f"{mechanism.name} swings": (np.arange(demo.motions), int(seeds[1])),
        f"{mechanism.name} validation": (
            np.arange(demo.motions, demo.motions + demo.validation),
            int(seeds[2]),
        ),
    }
    logs = [
        simulate_free_motions(
            mechanism,
            demo.truth,
            releases.lengths[index],
            releases.starts[index],
            rate=demo.rate,
            duration=demo.duration,
            position_sigma=demo.position_sigma,
            angle_sigma=demo.angle_sigma,
            seed=noise,
            name=name,
        )
        for name, (index, noise) in parts.items()
    ]
    return logs[0], logs[1]


def random_releases(
    mechanism: Mechanism, demo: FreeDemo, seed: int, mounted: tuple[str, ...] = ()
) -> Releases:
    """One release per motion of the experiment, each within the limits of the robot.

    Args:
        mechanism: With its cables and limits.
        demo: True parameters, number and duration of the motions.
        seed: Of the draws.
        mounted: Payloads on the robot, included in the tensions.
    """
    count = demo.motions + demo.validation
    cables = tuple(cable.name for cable in driven_cables(mechanism))
    limits = free_limits(mechanism, cables)
    releasing = Releasing(mechanism, dict(demo.truth), limits, demo.duration, demo.rate, mounted)
    rng = np.random.default_rng(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    rest = releasing.rests(rng, 2 * count)
    releases = releasing.drawn(rng, rest[rng.permutation(len(rest))[: 2 * count]])
    for _ in range(_ROUNDS):
        use = releasing.over(releases, demo.duration)[1]
        if np.count_nonzero(use <= 1.0) >= count:
            return releases.picked(np.flatnonzero(use <= 1.0)[:count])
        releases = releasing.smaller(releases, use)
    raise NoResultError(
        f"fewer than {count} free motions satisfy the limits of robot '{mechanism.name}'; widen `limits:`"
    )
