"""MuJoCo moves the robots: what dynid says about their logs is said about another program's motion.

Runs are short, with steps of 0.2 ms: the figures of the documentation come from the same code.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import numpy as np
import pytest

import dynid.pipeline
from dynid.excitation.closed import closed_states, places
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.sensors import measured_motion
from dynid.pipeline import identify_logs
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.plant.engines import plant_log, run_plant
from dynid.simulation.plant.run import PlantRun
from dynid.simulation.plant.settings import STIFF, PlantSettings, Softness
from dynid.simulation.prescribed import parameter_vector
from tests.built_in import demo_of, robot_of
from tests.test_plant import release

pytest.importorskip("mujoco")

CLOSED = ("dualv", "orthoglide", "stewart")
# First harmonic [Hz], and how long it runs [s]: one period, and as fast as the limits allow.
MOTIONS = {"dualv": (1.0, 1.0), "orthoglide": (1.0, 1.0), "stewart": (0.8, 1.25)}
# Base parameters that about a second of motion tells; rotors and friction of the orthoglide hide its legs.
FIRM = {
    "dualv": ("*_platform_R", "ZZ_*", "Fv_*", "Fs_*", "Off_*"),
    "orthoglide": ("M_*", "Ia_*", "Off_*", "Fv_*", "Fs_*", "ZZ_bar*"),
    "stewart": ("*_platform*", "XX_cylinder*", "ZZ_cylinder*", "MY_cylinder*", "MZ_rod*", "Fv_*", "Fs_*"),
}
RATE = 500.0
STEP = 2e-4


@cache
def run_of(
    name: str,
    softness: Softness = STIFF,
    step: float = STEP,
    duration: float | None = None,
    payloads: tuple[str, ...] = (),
) -> PlantRun:
    frequency, whole = MOTIONS[name]
    motion = random_motion(robot_of(name), 1, harmonics=5, frequency=frequency, draws=1)
    return run_plant(
        robot_of(name),
        demo_of(name).truth,
        motion,
        rate=RATE,
        duration=whole if duration is None else duration,
        settings=PlantSettings(step=step, softness=softness, tension=demo_of(name).tension),
        payloads=payloads,
    )


def effort_error(name: str, run: PlantRun, payloads: tuple[str, ...] = ()) -> float:
    """Relative error of J_a^T tau with the true parameters, from the measured joints alone.

    The plant's own q, dq and ddq of the measured joints go through dynid's closure; near a reversal
    the plant's dry friction is no sign function, so these samples do not count.
    """
    robot = robot_of(name)
    seen = measured_motion(robot, run.q, run.dq, run.ddq)
    states = closed_states(robot, places(robot, robot.measured_positions), *seen)
    chi = parameter_vector(robot, demo_of(name).truth)
    efforts = tree_matrix(robot, states.q, states.dq, states.ddq, mounted=payloads) @ chi
    explained = np.einsum("nvd,nv->nd", states.N, efforts)
    applied = np.einsum("nvd,nv->nd", states.N, run.tau @ robot.actuator_map)
    # tanh(8) is 1 but for 2e-7.
    moving = np.all(
        np.abs(run.dq[:, places(robot, list(run.width))]) > 8.0 * np.array([*run.width.values()]), 1
    )
    assert moving.mean() > 0.5
    return float(np.linalg.norm((explained - applied)[moving]) / np.linalg.norm(applied[moving]))


@pytest.mark.parametrize("name", CLOSED)
def test_true_parameters_explain_the_efforts(name: str) -> None:
    run = run_of(name)
    # Measured: 5e-7 (dualv), 8e-8 (orthoglide), 2e-6 (stewart): the softness of the loops.
    assert effort_error(name, run) < 1e-5
    assert run.gap.max() < 5e-7  # m or rad: open by (1 - d) a T^2, measured 1e-8 to 6e-8


def test_a_mounted_payload_is_explained_too() -> None:
    run = run_of("dualv", duration=0.3, payloads=("payload",))
    assert effort_error("dualv", run, ("payload",)) < 1e-5  # as without
    assert effort_error("dualv", run) > 0.1  # 5.4 kg on a robot of 14 kg


def test_default_softness_is_no_reference() -> None:
    # 1.1 % where the stiff loops leave 5e-7: MuJoCo's defaults let them open by 0.7 mm.
    default = Softness(steps=None, seconds=0.02, impedance=(0.9, 0.95))
    run = run_of("dualv", default, duration=0.5)
    assert effort_error("dualv", run) > 5e-3
    assert run.gap.max() > 1e-4


def test_loops_too_stiff_for_their_steps_cost_accuracy() -> None:
    # A stage of Runge-Kutta leaves the loops by (h v)^2 / 8 L; springs with T = 2 h answer by
    # accelerations that do not fade with h. The error falls with (h / T)^4: measured 3e-4, 2e-5, 1e-6.
    errors = [
        effort_error("dualv", run_of("dualv", Softness(steps=k), duration=0.25)) for k in (2.0, 4.0, 8.0)
    ]
    assert errors[0] > 8.0 * errors[1] > 64.0 * errors[2]


@pytest.mark.parametrize("name", CLOSED)
def test_identification_recovers_what_the_plant_is_made_of(name: str, monkeypatch) -> None:
    # Symbols in groupings take most of the time, and nothing here reads them.
    monkeypatch.setattr(dynid.pipeline, "grouping_symbols", lambda *_, **__: {})
    robot, truth = robot_of(name), demo_of(name).truth
    log = plant_log(robot, run_of(name))
    assert log.dq is None  # dynid filters and differentiates the positions itself
    estimate = identify_logs(robot, [log], (), Experiment(robot=name), truth=truth)
    found = {one.name: one for one in estimate.parameters}
    firm = [name for name in found if any(fnmatchcase(name, pattern) for pattern in FIRM[robot.name])]
    errors = {name: abs(found[name].value / estimate.truth[name] - 1.0) for name in firm}
    # Measured over 24, 16 and 46 of them: worst 2e-4, 3e-3 and 5e-3, median 2e-5, 2e-6 and 2e-4.
    assert max(errors.values()) < 0.01, errors
    assert np.median(list(errors.values())) < 1e-3
    # All others lie where sigma says; what is left of noise-free rows is no Gaussian sample.
    off = [abs(one.value - estimate.truth[one.name]) / one.sigma for one in found.values()]
    assert max(off) < 6.0
    assert estimate.fit.residual_percent < 0.01


@pytest.mark.parametrize(("name", "drift"), [("serial6", 1e-12), ("dualv", 1e-9), ("orthoglide", 1e-6)])
def test_an_unforced_plant_keeps_its_energy(name: str, drift: float) -> None:
    robot = robot_of(name)
    lossy = ("Fv", "Fs", "Off")
    truth = {key: 0.0 if key.split("_")[0] in lossy else x for key, x in demo_of(name).truth.items()}
    assembly = assembly_of(robot)
    N = assembly.tangent(assembly.closure.values(assembly.start[None]).A)[0]
    run = release(robot, truth, assembly.start, 0.5 * N.sum(axis=1), rate=100.0, duration=0.2, step=STEP)
    lost = np.ptp(run.energy.sum(axis=1)) / run.energy[:, 1].max()
    # Measured: 7e-15, 4e-11 and 5e-8 of the kinetic energy: the dampers of the loops take a little.
    assert lost < drift
