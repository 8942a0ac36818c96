"""When drifts of a simulated fleet are found, and how many alarms are false, if it is tested every month.

`python benchmarks/fleet_drift.py [--fleets 20] [--seed 0] [--robots 50] [--months 24] [--every]`. Each robot
has twelve parameters: four friction coefficients (sigma 1.2 %), four first moments (0.5 %) and four inertias
(3 %), which differ by 10 % between robots and by 1 % from log to log. One friction coefficient of five robots
grows by 3 % a month. Estimates are drawn, not identified; `--blocks 8` draws their sigma too, as of logs with
so many blocks of time.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynid.campaign.fleet import fleet_of
from dynid.campaign.trend import Sample

_KINDS = {"Fv": 0.012, "MX": 0.005, "ZZ": 0.03}
_JOINTS = 4
_DRIFTING, _GROWTH, _SCATTER, _BETWEEN = 5, 0.03, 0.01, 0.1


def fleet(seed: int, robots: int, months: int, blocks: int = 0) -> Iterator[tuple[int, Sample]]:
    """Month and estimate, of all robots."""
    rng = np.random.default_rng(seed)
    other = np.random.default_rng([seed, blocks])
    for robot in range(robots):
        for kind, relative in _KINDS.items():
            for joint in range(_JOINTS):
                size = 1.0 + _BETWEEN * rng.standard_normal()
                grows = _GROWTH * (robot < _DRIFTING and (kind, joint) == ("Fv", 2))
                for month in range(months):
                    true = size * (1.0 + grows * month + _SCATTER * rng.standard_normal())
                    sigma = relative * size
                    value = true + sigma * rng.standard_normal()
                    sigma *= math.sqrt(other.chisquare(blocks - 1) / (blocks - 1)) if blocks else 1.0
                    date = f"{2026 + month // 12}-{month % 12 + 1:02d}"
                    yield month, Sample(f"r{robot}", date, "", f"{kind}_{joint}", "", value, sigma)


def judged(seed: int, robots: int, months: int, blocks: int, looks: Sequence[int]) -> dict[str, Any]:
    """Drifts found and false alarms at each look, which uses all months before it."""
    drawn = list(fleet(seed, robots, months, blocks))
    found, false = [], set()
    for look in looks:
        changes = fleet_of(sample for month, sample in drawn if month < look).changes
        named = {(one.robot, one.parameter) for one in changes}
        true = {(f"r{robot}", "Fv_2") for robot in range(min(_DRIFTING, robots))}
        found.append(len(named & true))
        false |= named - true
    return {"seed": seed, "looks": list(looks), "found": found, "false_alarms": len(false)}


def main() -> None:
    """Draw fleets and print what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first fleet")
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--blocks", type=int, default=0, help="of time in a log; 0: sigma is exact")
    parser.add_argument("--looks", type=int, nargs="+", default=[6, 12, 24])
    parser.add_argument("--every", action="store_true", help="look every month from the fourth on")
    options = parser.parse_args()
    looks = range(4, options.months + 1) if options.every else options.looks
    alarms = []
    for seed in range(options.seed, options.seed + options.fleets):
        result = judged(seed, options.robots, options.months, options.blocks, list(looks))
        print(json.dumps(result), flush=True)
        alarms.append(result["false_alarms"])
    print(f"fleets with a false alarm: {sum(map(bool, alarms))} of {len(alarms)}, most in one: {max(alarms)}")


if __name__ == "__main__":
    main()
