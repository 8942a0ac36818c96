"""Stick and slip of the forward engine beside simulators that share no code with it.

Two pendulums are integrated from event to event: signs of friction are constant between events, and after
each event all combinations of sliding and sticking are tried. A five-bar linkage is compared with MuJoCo's
own friction.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.plant.control import Controller
from dynid.simulation.plant.forward_plant import ForwardPlant
from dynid.simulation.plant.settings import PlantSettings

PENDULUMS = """
name: pendulums
gravity: [0, -9.81, 0]
joints:
  - {name: a, kind: revolute, parent: base, child: upper, mdh: {}}
  - {name: b, kind: revolute, parent: upper, child: lower, mdh: {d: 0.4}}
drive: {"*": [Fv, Fs]}
"""
LENGTH, G = 0.4, 9.81
MASS, CENTRE, INERTIA = (1.5, 0.9), (0.2, 0.15), (0.03, 0.012)  # kg, m, kg m^2 about the centre
VISCOUS = np.array([0.05, 0.02])
START = np.array([-1.2, 0.3])


def turns(t):
    """Efforts that let both joints stick for a part of the time, shape (..., 2), in [N m]."""
    first = -0.3 + 2.6 * np.sin(4.0 * t) + 1.1 * np.sin(9.0 * t + 1.0)
    second = 0.9 * np.sin(6.5 * t) + 0.4 * np.sin(2.0 * t + 0.5)
    return np.stack([first, second], axis=-1)


class Pendulums:
    """Lagrange's equations of two pendulums, by hand: M(q) a = forces - friction."""

    def __init__(self, dry: tuple[float, float]) -> None:
        self.dry = np.array(dry)

    def mass(self, q):
        (m1, m2), (c1, c2), (j1, j2) = MASS, CENTRE, INERTIA
        cross = m2 * LENGTH * c2 * np.cos(q[1])
        inner = j2 + m2 * c2**2
        return np.array(
            [
                [j1 + m1 * c1**2 + m2 * LENGTH**2 + inner + 2.0 * cross, inner + cross],
                [inner + cross, inner],
            ]
        )

    def forces(self, t, q, v):
        """Without dry friction."""
        (m1, m2), (c1, c2) = MASS, CENTRE
        h = m2 * LENGTH * c2 * np.sin(q[1])
        coriolis = np.array([-h * (2.0 * v[0] * v[1] + v[1] ** 2), h * v[0] ** 2])
        far = m2 * G * c2 * np.cos(q[0] + q[1])
        weight = np.array([(m1 * c1 + m2 * LENGTH) * G * np.cos(q[0]) + far, far])
        return turns(t) - VISCOUS * v - coriolis - weight

    def solved(self, t, q, v, mode):
        """Accelerations and friction for a mode: 1 or -1 slides that way, 0 sticks."""
        M, force = self.mass(q), self.forces(t, q, v)
        friction, a = self.dry * mode, np.zeros(2)
        free = np.flatnonzero(mode)
        a[free] = np.linalg.solve(M[np.ix_(free, free)], (force - friction)[free])
        stuck = mode == 0
        friction[stuck] = (force - M @ a)[stuck]
        return a, friction

    def mode_at(self, t, q, v, moving):
        """The only mode in which what sticks is held, and what starts moves against its friction."""
        choices = [[int(s)] if s else [0, 1, -1] for s in moving]
        fits = []
        for mode in map(np.array, product(*choices)):
            a, friction = self.solved(t, q, v, mode)
            held = np.abs(friction) <= self.dry * (1.0 + 1e-12)
            if np.all(np.where(mode == 0, held, (moving != 0) | (mode * a > 0.0))):
                fits.append(mode)
        assert len(fits) == 1
        return fits[0]

    def run(self, times):
        """Positions and speeds at some times, shape (n, 4), and the modes that were passed."""
        state, t, out, modes = np.concatenate([START, np.zeros(2)]), times[0], [], []
        mode = self.mode_at(t, state[:2], state[2:], np.zeros(2))
        while t < times[-1]:
            modes.append(tuple(mode.tolist()))
            part = self.until_an_event(t, times[-1], state, mode)
            inside = times[(times >= t) & (times < part.t[-1])]
            out.append(part.sol(inside).T if len(inside) else np.empty((0, 4)))
            t, state, moving = part.t[-1], part.y[:, -1].copy(), mode.copy()
            for k, found in enumerate(part.t_events):
                if len(found):
                    state[2 + k], moving[k] = 0.0, 0  # comes to rest, or may start
            state[2:][moving == 0] = 0.0
            # What starts is judged a little later, when its friction is no longer exactly at the limit.
            mode = self.mode_at(t + 1e-9, state[:2], state[2:], moving)
        return np.concatenate([*out, state[None]]), modes

    def until_an_event(self, t, end, state, mode):
        def slope(t, x):
            return np.concatenate([x[2:], self.solved(t, x[:2], x[2:], mode)[0]])

        def event(k):
            def margin(t, x):
                if mode[k]:
                    return mode[k] * x[2 + k]
                return self.dry[k] - abs(self.solved(t, x[:2], x[2:], mode)[1][k])

            margin.terminal, margin.direction = True, -1.0
            return margin

        events = [event(k) for k in range(2)]
        return solve_ivp(
            slope,
            (t, end),
            state,
            "DOP853",
            events=events,
            rtol=1e-10,
            atol=1e-12,
            dense_output=True,
            max_step=0.02,
        )


def pendulums(tmp_path: Path, dry: tuple[float, float], times, step: float):
    file = tmp_path / "pendulums.yaml"
    file.write_text(PENDULUMS, encoding="utf-8")
    robot = load_robot(str(file))
    truth = dict.fromkeys((p.name for p in parameter_table(robot)), 0.0)
    for body, m, c, j in zip(("upper", "lower"), MASS, CENTRE, INERTIA, strict=True):
        truth |= {f"M_{body}": m, f"MX_{body}": m * c, f"YY_{body}": j + m * c**2, f"ZZ_{body}": j + m * c**2}
    for k, joint in enumerate("ab"):
        truth |= {f"Fs_{joint}": dry[k], f"Fv_{joint}": VISCOUS[k]}
    plant = ForwardPlant(robot, truth, START, np.zeros(2), PlantSettings(), step)
    plant.drive(Controller(robot, (np.zeros(2), np.zeros(2)), lambda t: (turns(t), np.zeros((len(t), 2)))))
    return plant.recorded(times, round((times[1] - times[0]) / step))


@pytest.mark.parametrize("dry", [(1.2, 0.5), (0.0, 0.7), (6.0, 0.25)])
def test_two_pendulums_move_as_from_event_to_event(tmp_path: Path, dry) -> None:
    times = np.arange(301) / 100.0
    exact, modes = Pendulums(dry).run(times)
    assert len(modes) > 10
    for step in (1e-3, 2.5e-4):
        run = pendulums(tmp_path, dry, times, step)
        errors = np.abs(np.column_stack([run.q, run.dq]) - exact).max(axis=0)
        # What starts to slip is let go at the next step: late by at most one.
        assert np.all(errors < step * np.array([0.1, 0.1, 1.0, 1.0]))  # rad and rad/s


def test_a_five_bar_linkage_moves_as_in_mujoco() -> None:
    """MuJoCo holds what sticks by a stiff damper: it creeps, less with shorter steps."""
    mujoco = pytest.importorskip("mujoco")
    from dynid.simulation.plant.mujoco_model import mujoco_model

    robot, step = load_robot("fivebar"), 1e-4
    truth = read_demo(demo_file("fivebar"), robot).truth
    truth |= {"Fs_motor1": 1.3, "Fs_motor2": 2.0, "Off_motor1": 0.0, "Off_motor2": 0.0}
    truth |= dict.fromkeys(("Fv_motor1", "Fv_motor2"), 1.0)
    start, times = assembly_of(robot).start, np.arange(41) / 100.0

    def efforts(t):
        return np.stack([3.0 * np.sin(14.0 * t) - 3.0, 3.6 * np.sin(19.0 * t + 1.0) + 3.0], axis=-1)

    plant = ForwardPlant(robot, truth, start, np.zeros(4), PlantSettings(), 5e-4)
    plant.drive(Controller(robot, (np.zeros(2), np.zeros(2)), lambda t: (efforts(t), np.zeros((len(t), 2)))))
    run = plant.recorded(times, 20)

    built = mujoco_model(robot, truth, step=step)
    model, data = built.model, mujoco.MjData(built.model)
    motors = [int(built.at_v[robot.coordinates.index(name)]) for name in ("motor1", "motor2")]
    for place, name in zip(motors, ("motor1", "motor2"), strict=True):
        model.dof_frictionloss[place], model.dof_damping[place] = truth[f"Fs_{name}"], truth[f"Fv_{name}"]
        model.dof_solref[place], model.dof_solimp[place, :2] = [2.0 * step, 1.0], 0.9999
    data.qpos[built.at_q] = start
    model.opt.iterations = 100
    seen = [start]
    for k in range(round(times[-1] / step)):
        data.qfrc_applied[motors] = efforts((k + 0.5) * step)
        mujoco.mj_step(model, data)
        if (k + 1) % round(0.01 / step) == 0:
            seen.append(data.qpos[built.at_q].copy())
    rests = np.abs(run.dq[:, [0, 2]]) < 1e-9
    assert 0.2 < rests.mean() < 0.8
    assert np.abs(run.q - seen).max() < 3e-5  # rad, of 0.4: MuJoCo creeps by some 1e-6
