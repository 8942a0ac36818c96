"""A bag of `JointState` with efforts and a URDF are all that an identification needs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.log_files import joint_states, store, write_rosbag2
from tests.workspace import columns, dynid

# Two links in the vertical plane.
URDF = """<robot name="arm"><link name="base"/><link name="upper"/><link name="fore"/>
<joint name="motor1" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
 <limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
<joint name="motor2" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.4"/>
 <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint></robot>
"""
SETTINGS = """schema: dynid.simulation/1
rate: 200
duration: 8
motion: {kind: fourier, harmonics: 4, frequency: 0.25, seed: 1}
effort: {sigma: 0.02}
"""
TRUTH = {"M_upper": 2.0, "MZ_upper": 0.4, "YY_upper": 0.1, "M_fore": 1.0, "MZ_fore": 0.2, "YY_fore": 0.06}


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_a_bag_and_a_urdf_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(URDF, encoding="utf-8")
    Path("simulation.yaml").write_text(SETTINGS, encoding="utf-8")
    symbols = ["XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"]
    truth = {f"{symbol}_{body}": 0.0 for symbol in symbols for body in ("upper", "fore")} | TRUTH
    truth |= {
        "XX_upper": 0.1,
        "ZZ_upper": 0.01,
        "XX_fore": 0.06,
        "ZZ_fore": 0.01,
        "Fv_motor1": 0.3,
        "Fv_motor2": 0.3,
    }
    Path("truth.yaml").write_text(json.dumps(truth), encoding="utf-8")
    given = ("--truth", "truth.yaml", "--config", "simulation.yaml", "--out", "a.csv")
    made = dynid("simulate", "arm.urdf", *given)
    assert made.exit_code == 0, made.output
    log = {name: np.array(cells, dtype=float) for name, cells in columns(Path("a.csv")).items()}
    log |= {f"dq_{j}": np.gradient(log[f"q_{j}"], 0.005) for j in (1, 2)}
    states = joint_states(log, store())
    bag = write_rosbag2(tmp_path, {"/joint_states": ("sensor_msgs/msg/JointState", states)}, storage)
    done = dynid("identify", "--robot", "arm.urdf", "--log", str(bag))
    assert done.exit_code == 0, done.output
    assert "matched by their names" in done.output
    found = json.loads(Path("results/arm/result.json").read_text(encoding="utf-8"))
    (friction,) = [one for one in found["parameters"] if one["name"] == "Fv_motor2"]
    # 1600 samples with 0.02 N m of noise at speeds of about 1 rad/s: sigma is below 0.01.
    assert friction["value"] == pytest.approx(0.3, abs=0.05)
