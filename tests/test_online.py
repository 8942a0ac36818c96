"""Online: a payload step, drift of friction and contacts, found sample by sample."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid import Online
from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.frame import Frame
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.prediction.online_kernels import filtered
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import Estimate
from tests.built_in import truth_of

COM = np.array([0.02, 0.03, 0.08])
MASS, RATE, STEP = 1.0, 1000.0, 1500


@cache
def identified(name: str = "ur5") -> Estimate:
    demo = built_in_experiment(name)
    return identify_logs(demo.mechanism, demo.logs, (), Experiment(robot=name, auto="off"))


@cache
def recorded(loaded: bool, stiffer: float = 1.0, name: str = "ur5", seed: int = 7) -> Log:
    """Three seconds of the same motion with the same noise, with or without a box on the flange."""
    robot = load_robot(name)
    demo = read_demo(demo_file(name), robot)
    motion = random_motion(robot, seed=seed, harmonics=demo.harmonics, frequency=demo.frequency)
    truth = {name: value * (stiffer if name.startswith("Fs") else 1.0) for name, value in demo.truth.items()}
    truth |= {"M_box": MASS, "XX_box": 1e-3, "YY_box": 1e-3, "ZZ_box": 1e-3}
    truth |= dict.fromkeys(("XY_box", "XZ_box", "YZ_box", "MX_box", "MY_box", "MZ_box"), 0.0)
    box = Payload("box", robot.joints[-1].child, Frame(np.eye(3), COM))
    return simulate_log(
        replace(robot, payloads={"box": box}),
        truth,
        motion,
        rate=RATE,
        duration=3.0,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=3,
        payloads=("box",) if loaded else (),
    )


def test_a_payload_step_is_found_within_a_third_of_a_second() -> None:
    empty, full = recorded(False), recorded(True)
    online = Online(identified(), rate=RATE)
    for q, tau in zip(empty.q[:STEP], empty.tau[:STEP], strict=True):
        online.update(q, tau)
    before = online.payload
    assert abs(before.mass) < 3.0 * before.mass_sigma
    assert not online.changes
    for q, tau in zip(full.q[STEP : STEP + 300], full.tau[STEP : STEP + 300], strict=True):
        online.update(q, tau)
    (found,) = online.changes
    assert STEP / RATE < found < STEP / RATE + 0.3
    assert abs(online.payload.mass - MASS) < 0.2
    for q, tau in zip(full.q[STEP + 300 :], full.tau[STEP + 300 :], strict=True):
        online.update(q, tau)
    now = online.payload
    # One draw: three sigma hold 99.7 %, of four numbers 99 %.
    assert abs(now.mass - MASS) < 3.0 * now.mass_sigma < 0.05
    assert np.all(np.abs(now.com - COM) < 3.0 * now.com_sigma)
    assert not online.contact


def test_a_fast_wrist_does_not_move_the_centre_of_mass() -> None:
    """At 15 rad/s W of filtered positions differs from the filtered W: it was off by ten sigma."""
    errors = []
    for seed in (105, 106, 107):
        empty, full = (recorded(loaded, name="scara", seed=seed) for loaded in (False, True))
        online = Online(identified("scara"), rate=RATE)
        for k in range(len(full.t)):
            log = empty if k < STEP else full
            online.update(log.q[k], log.tau[k])
        now = online.payload
        errors.append((now.com - COM)[:2] / now.com_sigma[:2])  # z: no rotation of the tool shows it
    assert np.sqrt(np.mean(np.square(errors))) < 2.0  # of six numbers: beyond by chance in 1 of 1000


def test_friction_that_grows_is_followed() -> None:
    log = recorded(False, stiffer=1.3)
    online = Online(identified(), rate=RATE, drift=1.0)
    for q, tau in zip(log.q, log.tau, strict=True):
        online.update(q, tau)
    truth = truth_of("ur5")
    change, sigma = online.friction["Fs_shoulder_lift_joint"]
    assert change > 2.0 * sigma
    # Rise and Fv share the change over three seconds: Fs alone is known to about half of it.
    assert change == pytest.approx(0.3 * truth["Fs_shoulder_lift_joint"], rel=0.6)


def test_a_push_is_a_contact_and_a_lost_sample_is_nothing() -> None:
    log = recorded(False)
    online = Online(identified(), rate=RATE)
    # 30 ms after the push began: later it looks like a load, which is tried first.
    for k, (q, tau) in enumerate(zip(log.q[:1990], log.tau[:1990], strict=True)):
        pushed = tau + (8.0 if k > 1960 else 0.0) * np.eye(6)[2]
        online.update(q, np.full(6, np.nan) if k == 1000 else pushed)
        if k == 1955:
            assert not online.contact
    assert online.contact
    assert np.argmax(np.abs(online.residual) / online.residual_sigma) == 2


def test_lost_samples_and_uneven_stamps_change_nothing() -> None:
    """Stamps off by a fifth of a period, lost and repeated samples, NaN, and a gap of 30 ms."""
    empty, full = recorded(False), recorded(True)
    rng = np.random.default_rng(5)
    online = Online(identified(), rate=RATE)
    times = np.arange(len(empty.t)) / RATE
    even = times + rng.uniform(-0.2, 0.2, len(times)) / RATE
    for k, t in enumerate(even):
        log = empty if k < STEP else full
        if 800 <= k < 830 or rng.random() < 0.02:
            continue
        q, tau = (np.array([np.interp(t, times, column) for column in x.T]) for x in (log.q, log.tau))
        if rng.random() < 0.02:
            tau[2] = np.nan
        online.update(q, tau, 100.0 + t)
        if rng.random() < 0.02:
            online.update(q + 1.0, tau, 100.0 + t)  # the same stamp again
        if k == STEP - 1:
            assert not online.changes
            assert abs(online.payload.mass) < 3.0 * online.payload.mass_sigma
    (found,) = online.changes
    assert STEP / RATE < found < STEP / RATE + 0.3
    now = online.payload
    assert abs(now.mass - MASS) < 3.0 * now.mass_sigma < 0.05
    assert np.all(np.abs(now.com - COM) < 3.0 * now.com_sigma)


def test_the_filter_gives_a_signal_and_its_rates() -> None:
    """Against the transfer function 1 / (1 + s/w)^3 at one frequency."""
    w, omega = 100.0, 12.0
    t = np.cumsum(np.random.default_rng(0).uniform(5e-4, 1.5e-3, 2000))
    u, x, old = np.sin(omega * t), np.zeros((3, 1)), np.zeros(1)
    old[0] = u[0]
    for k in range(1, len(t)):
        filtered(w, t[k] - t[k - 1], old, u[k : k + 1], x)
    x = x[:, 0]
    gain = (1.0 + 1j * omega / w) ** -3
    exact = [(gain * (1j * omega) ** k * np.exp(1j * omega * t[-1])).imag for k in range(3)]
    # The input is linear between samples: an error of (omega dt)^2 / 12.
    np.testing.assert_allclose(x, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("robot", ["dualv", "cable4"])
def test_robots_that_are_no_open_chain_are_refused(robot: str) -> None:
    with pytest.raises(InputError, match="open chain"):
        Online(replace(identified(), robot=robot), robot=load_robot(robot))


def test_a_body_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="no body 'wrist_3'"):
        Online(identified(), body="wrist_3")
