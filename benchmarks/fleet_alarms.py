"""False alarms of the drift tests, and drifts found, if robots scatter as they do in practice.

`python benchmarks/fleet_alarms.py [--fleets 20] [--seed 0] [--looks 5 6 9 12] [CASE ...]`. Each robot has
twelve parameters with a sigma of 1 %, which differ by 10 % between robots. Each case is one kind of scatter
from log to log. A fleet counts as falsely alarmed if any look has an alarm. Then one parameter of five robots
(of a robot alone: of it) grows by 3 % a month. It is counted in how many of them this is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dynid.campaign.fleet import fleet_of
from dynid.campaign.trend import Sample

_PARAMETERS, _GROWTH, _DRIFTING, _BETWEEN, _SIGMA = 12, 0.03, 5, 0.1, 0.01
_Scatter = npt.NDArray[np.float64]
_Shape = tuple[int, int, int, int]  # robots, parameters, months, logs of a day
_Draw = Callable[[np.random.Generator, _Shape], _Scatter]


def _plain(rng: np.random.Generator, shape: _Shape) -> _Scatter:
    return 0.01 * rng.standard_normal(shape)


def _noisy(robots: int, size: float) -> _Draw:
    def draw(rng: np.random.Generator, shape: _Shape) -> _Scatter:
        return np.where(np.arange(shape[0]) < robots, size, 0.01)[:, None, None, None] * rng.standard_normal(
            shape
        )

    return draw


def _one_joint(rng: np.random.Generator, shape: _Shape) -> _Scatter:
    """Five robots scatter by 3 % in one parameter only."""
    drawn = _plain(rng, shape)
    drawn[:5, 0] *= 3.0
    return drawn


def _day(size: float) -> _Draw:
    def draw(rng: np.random.Generator, shape: _Shape) -> _Scatter:
        return np.broadcast_to(size * rng.standard_normal((*shape[:3], 1)), shape)

    return draw


def _temperature(rng: np.random.Generator, shape: _Shape) -> _Scatter:
    """All parameters of a robot share the effect of a day."""
    return np.broadcast_to(0.02 * rng.standard_normal((shape[0], 1, shape[2], 1)), shape)


def _heavy(rng: np.random.Generator, shape: _Shape) -> _Scatter:
    return np.asarray(0.01 / np.sqrt(3.0) * rng.standard_t(3, shape))


def _serial(rho: float, parameters: int = _PARAMETERS) -> _Draw:
    def draw(rng: np.random.Generator, shape: _Shape) -> _Scatter:
        drawn = _plain(rng, shape)
        for month in range(1, shape[2]):
            kept = rho * drawn[:, :parameters, month - 1]
            drawn[:, :parameters, month] = kept + np.sqrt(1.0 - rho**2) * drawn[:, :parameters, month]
        return drawn

    return draw


# words, robots, logs of a day, scatter, sigma over what is stated
CASES: dict[str, tuple[str, int, int, _Draw, float]] = {
    "equal": ("1 % each", 50, 1, _plain, 1.0),
    "alone": ("1 %, one robot", 1, 1, _plain, 1.0),
    "five": ("five robots 3 %, others 1 %", 50, 1, _noisy(5, 0.03), 1.0),
    "one": ("one robot 5 %, others 1 %", 50, 1, _noisy(1, 0.05), 1.0),
    "joint": ("five robots 3 % in one parameter", 50, 1, _one_joint, 1.0),
    "day": ("four logs a day, 2 % from day to day", 50, 4, _day(0.02), 1.0),
    "day-alone": ("the same, one robot", 1, 4, _day(0.02), 1.0),
    "two": ("two logs a day, 1 % from day to day", 50, 2, _day(0.01), 1.0),
    "temperature": ("2 % from day to day, in all parameters alike", 50, 1, _temperature, 1.0),
    "temperature-alone": ("the same, one robot", 1, 1, _temperature, 1.0),
    "heavy": ("Student's t with 3 degrees of freedom", 50, 1, _heavy, 1.0),
    "heavy-exact": ("the same, sigma 0.1 %", 50, 1, _heavy, 0.1),
    "heavy-alone": ("the same, one robot", 1, 1, _heavy, 0.1),
    "ar": ("correlation 0.5 from month to month", 50, 1, _serial(0.5), 1.0),
    "ar-exact": ("the same, sigma 0.2 %", 50, 1, _serial(0.5), 0.2),
    "ar-some": ("the same in four of twelve parameters", 50, 1, _serial(0.5, 4), 0.2),
    "ar-strong": ("correlation 0.8, sigma 0.2 %", 50, 1, _serial(0.8), 0.2),
    "ar-alone": ("correlation 0.5, sigma 0.2 %, one robot", 1, 1, _serial(0.5), 0.2),
}


def fleet(case: str, seed: int, months: int, growth: float) -> list[tuple[int, Sample]]:
    """Month and estimate, of all robots."""
    _, robots, logs, draw, exact = CASES[case]
    rng = np.random.default_rng(seed)
    shape = robots, _PARAMETERS, months, logs
    size = 1.0 + _BETWEEN * rng.standard_normal((robots, _PARAMETERS, 1, 1))
    sigma = exact * _SIGMA
    value = size * (1.0 + draw(rng, shape) + sigma * rng.standard_normal(shape))
    value[:_DRIFTING, 0] += size[:_DRIFTING, 0] * growth * np.arange(months)[:, None]
    dates = [f"{2026 + month // 12}-{month % 12 + 1:02d}-15" for month in range(months)]
    return [
        (
            m,
            Sample(
                f"r{r}",
                dates[m],
                "",
                f"Fv_{p}",
                "N",
                float(value[r, p, m, k]),
                sigma * float(size[r, p, 0, 0]),
            ),
        )
        for r, p, m, k in np.ndindex(shape)
    ]


def alarms(drawn: list[tuple[int, Sample]], months: int) -> set[tuple[str, str]]:
    """Robots and parameters named after so many months."""
    changes = fleet_of(sample for month, sample in drawn if month < months).changes
    return {(change.robot, change.parameter) for change in changes}


def main() -> None:
    """One line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--looks", type=int, nargs="+", default=[5, 6, 9, 12], help="months before each")
    options = parser.parse_args()
    last = max(options.looks)
    print(f"| scatter | fleets with a false alarm | found after 6 months | after {last} |")
    print("|---|---|---|---|")
    for case in options.cases:
        words, robots, *_ = CASES[case]
        true = {(f"r{robot}", "Fv_0") for robot in range(min(robots, _DRIFTING))}
        false, found = 0, [0, 0]
        for seed in range(options.seed, options.seed + options.fleets):
            drawn = fleet(case, seed, last, 0.0)
            false += any(alarms(drawn, look) for look in options.looks)
            grown = fleet(case, seed, last, _GROWTH)
            for k, look in enumerate((6, last)):
                found[k] += len(alarms(grown, look) & true)
        shares = " | ".join(f"{100.0 * count / (options.fleets * len(true)):.0f} %" for count in found)
        print(f"| {words} | {false} of {options.fleets} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
