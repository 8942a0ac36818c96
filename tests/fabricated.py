"""A made-up but lifelike result of a six-joint arm, for the tests of everything that shows results."""

from __future__ import annotations

import numpy as np

from dynid.common.notices import Notice
from dynid.statistics.estimate import Agreement, Estimate, GroupFit, ParameterEstimate, Validation
from dynid.statistics.estimate_parts import JointVerdict, Signals, Verdict

JOINTS = tuple(f"joint_{i}" for i in range(1, 7))
_INERTIAL = {
    1: ("ZZ_R",),
    2: ("XX_R", "XY_R", "XZ_R", "YZ", "ZZ_R", "MX_R", "MY"),
    3: ("XX_R", "XY_R", "XZ", "YZ", "ZZ_R", "MX_R", "MY_R"),
    4: ("XX_R", "XZ", "YZ", "ZZ_R", "MX"),
    5: ("XX_R", "XY", "ZZ_R", "MX", "MY_R"),
    6: ("XX_R", "XY", "ZZ", "MX", "MY"),
}
_UNITS = {"X": "kg m^2", "Y": "kg m^2", "Z": "kg m^2", "M": "kg m"}
_DRIVE_UNITS = {"Fv": "N m s/rad", "Fs": "N m"}


def estimate(*, truth: bool = True, seed: int = 4, joints: tuple[str, ...] = JOINTS) -> Estimate:
    """A result with 42 parameters, 3 warnings, 2 unknown parameters, 2 logs and one validation."""
    rng = np.random.default_rng(seed)
    true_values: dict[str, float] = {}
    parameters = []
    for name, unit in _names(joints):
        size = {"kg m^2": 0.8, "kg m": 2.0}.get(unit, 6.0)
        parameter, true_values[name] = _parameter(rng, name, unit, size)
        parameters.append(parameter)
    with_sigma = [p.sigma for p in parameters if p.sigma is not None]
    return Estimate(
        robot="serial6",
        model="inverse",
        estimator="wls",
        parameters=tuple(parameters),
        not_identifiable={
            "MZ_link6": "no motion of these logs tilts link6: its column is zero",
            "Ia_joint_1": "moves only together with ZZ_link1_R (ratio of columns constant to 1e-13)",
        },
        fit=_fit(rng, joints, len(parameters)),
        covariance=np.diag(np.square(with_sigma)),
        validation=(_validation(rng, joints),),
        warnings=_WARNINGS,
        choices=_CHOICES,
        provenance=_PROVENANCE,
        signals=tuple(
            _signals(rng, joints, log, log == "sinus_3.parquet")
            for log in ("sinus_1.parquet", "sinus_2.parquet", "sinus_3.parquet")
        ),
        truth=true_values if truth else None,
        verdict=_verdict(joints),
    )


def _verdict(joints: tuple[str, ...]) -> Verdict:
    """Usable with care, for the reasons of the warnings."""
    reasons = tuple(Notice(one.code, one.text, one.remedy) for one in _WARNINGS)
    judged = tuple(JointVerdict(joint, "good", 0.21, "N m", 1.4, 0.17) for joint in joints)
    return Verdict("care", "Usable with care", "", "validation sinus_3.parquet", reasons, judged)


def _names(joints: tuple[str, ...]) -> list[tuple[str, str]]:
    names = []
    for i, joint in enumerate(joints, start=1):
        for symbol in _INERTIAL[i]:
            head, _, grouped = symbol.partition("_")
            unit = "kg m" if head.startswith("M") else "kg m^2"
            names.append((f"{head}_link{i}" + ("_R" if grouped else ""), unit))
        names += [(f"{symbol}_{joint}", unit) for symbol, unit in _DRIVE_UNITS.items()]
    return names


def _parameter(
    rng: np.random.Generator, name: str, unit: str, size: float
) -> tuple[ParameterEstimate, float]:
    if name == "XY_link6":
        removed = ParameterEstimate(name, unit, 0.0, None, None, None, essential=False)
        return removed, 2.1e-4
    true_value = float(size * rng.normal() * 10 ** rng.uniform(-2, 0))
    if name.startswith("F"):
        true_value = abs(true_value)
    sigma = float(size * 10 ** rng.uniform(-3.6, -2))
    value = true_value + sigma * float(rng.normal())
    grouping = (
        f"{name} = {name[:-2]} + d4^2 M_link4 + 0.045 MX_link5 + YY_link3" if name.endswith("_R") else ""
    )
    prior = round(true_value * 1.2, 3) if unit == "kg m" else None
    interval = (value - 1.96 * sigma, value + 1.96 * sigma)
    relative = 100 * sigma / abs(value)
    return ParameterEstimate(name, unit, value, sigma, relative, interval, True, grouping, prior), true_value


def _groups(rng: np.random.Generator, joints: tuple[str, ...], level: float) -> tuple[GroupFit, ...]:
    groups = []
    for joint in joints:
        off = float(level * rng.uniform(0.6, 1.9))
        groups.append(GroupFit(joint, off / 8, off, 1 - (off / 100) ** 2, "N m", 4000))
    return tuple(groups)


def _fit(rng: np.random.Generator, joints: tuple[str, ...], p: int) -> Agreement:
    return Agreement(24000, p, p, 3.2e9, 412.7, 31.4, 1.003, 4.62, _groups(rng, joints, 4.6))


def _validation(rng: np.random.Generator, joints: tuple[str, ...]) -> Validation:
    return Validation("sinus_3.parquet", True, 5.13, 6.87, _groups(rng, joints, 6.8))


def _signals(rng: np.random.Generator, joints: tuple[str, ...], log: str, validation: bool) -> Signals:
    t = np.linspace(0.0, 20.0, 2500)
    phase = 2 * np.pi * rng.uniform(0.1, 0.4, (3, len(joints)))
    waves = sum(np.sin(np.outer(t, phase[i]) * (i + 1) + i) / (i + 1) for i in range(3))
    predicted = np.asarray(waves) * np.linspace(60, 4, len(joints))
    predicted += np.sign(np.gradient(predicted, axis=0)) * 2.0
    measured = predicted + rng.normal(size=predicted.shape) * 0.05 * np.abs(predicted).max(axis=0)
    t[1200:1202] = np.nan
    return Signals(log, joints, ("N m",) * len(joints), t, measured, predicted, validation)


_WARNINGS = (
    Notice(
        "delay",
        "tau of joint_2 lags its position by 1.4 +- 0.2 ms (0.7 samples)",
        "shift the column by -1.4 ms, or log efforts and positions with one clock",
    ),
    Notice(
        "weak-excitation",
        "11 of 42 parameters have 95 % intervals that hold zero; joint_6 never exceeds 0.4 rad/s",
        "move joint_6 faster, or remove what does not matter with `essential: {ratio: 10}`",
    ),
    Notice(
        "gain-unchecked",
        "no known payload or mass: a common factor on all efforts cannot be seen by any fit",
        "mount a known payload in one log, or give a known mass",
    ),
)
_CHOICES = {
    "filter": "zero-phase Butterworth, order 4, 42 Hz (from the noise floor of q_1..q_6)",
    "decimation": "one row in 10, W and Y low-passed at 40 Hz",
    "derivatives": "central differences, 5 points",
    "mask": "rows below 0.02 rad/s around reversals: 1312 of 25312 dropped",
    "weights": "one per effort and log, 3 iterations",
}
_PROVENANCE = {
    "inputs": [
        {"file": "serial6.yaml", "sha256": "9f2c" * 16},
        {"file": "sinus_1.parquet", "sha256": "03ab" * 16},
        {"file": "sinus_2.parquet", "sha256": "71de" * 16},
    ],
    "versions": {"dynid": "0.1.0", "numpy": "2.4.6", "python": "3.11.7"},
    "options": {"model": "inverse", "estimator": "wls", "efforts": None},
    "seed": 0,
}
