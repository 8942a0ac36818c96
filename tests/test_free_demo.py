"""Built-in experiments of robots that swing on locked cables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynid.cases.free_motion.log import free_motion_log
from dynid.cases.free_motion.simulation import free_logs, simulate_free
from dynid.common.errors import InputError
from dynid.experiment.sections import InternalSettings
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.mechanism.parameters import parameter_table
from dynid.robots.demo_file import demo_file, read_free_demo
from dynid.simulation.simulation import Simulation


@pytest.mark.parametrize("name", ["cable3", "cable4"])
def test_every_parameter_has_a_true_value(name: str) -> None:
    robot = load_robot(name)
    demo = read_free_demo(demo_file(name), robot)
    assert demo is not None
    assert set(demo.truth) == {parameter.name for parameter in parameter_table(robot)}
    assert read_free_demo(demo_file("cable8"), load_robot("cable8")) is None


def test_logs_hold_one_free_motion_a_segment() -> None:
    robot = load_robot("cable3")
    demo = read_free_demo(demo_file("cable3"), robot)
    short = replace(demo, motions=2, validation=1, duration=1.0)
    log, unseen = free_logs(robot, short, seed=3)
    assert (len(log.segments), len(unseen.segments)) == (2, 1)
    assert log.position_names == robot.measured_positions
    # Cables stand still but for the markers' noise: nothing is refused, nothing told.
    judged = free_motion_log(log, robot, InternalSettings())
    assert not [notice for notice in judged.notices if notice.code.startswith("cable")]


def test_unknown_keys_are_refused(tmp_path) -> None:
    text = demo_file("cable3").read_text()
    file = tmp_path / "cable3.demo.yaml"
    file.write_text(text.replace("rate: 100", "rat: 100"))
    with pytest.raises(InputError, match="rat"):
        read_free_demo(file, load_robot("cable3"))


def test_limits_hold_with_what_is_mounted() -> None:
    """8 kg on a platform of 6: swings that are fit for the bare robot pull too hard with it."""
    own = {"M": 8.0, "MZ": 0.2, "XX": 0.1, "YY": 0.1, "ZZ": 0.1}
    ballast = Payload("ballast", "platform", known=dict.fromkeys(SYMBOLS, 0.0) | own)
    robot = replace(load_robot("cable3"), payloads={"ballast": ballast}, rebuild=None)
    found = simulate_free(robot, Simulation(rate=50.0, duration=1.0, payloads=("ballast",)))
    low, high = robot.limits["cables"]["tension"]
    assert low <= found.motions.tensions.min()
    assert found.motions.tensions.max() <= high
    assert found.motions.tensions.max() > 60.0  # the weight of both hangs there
