"""Names of columns: styles matched without help, ambiguous ones refused, drives, patterns."""

import math
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.commands.shared import column_of, with_options
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.motion.column_text import in_file
from dynid.motion.columns import matched
from dynid.motion.logs import log_from_columns
from dynid.motion.settings import ColumnMap, DriveSettings
from dynid.motion.slots import slots
from dynid.motion.table import Table
from dynid.pipeline import read_logs
from dynid.problem import as_asked
from tests.arms import arm, recording, write_csv

NAMES = ("shoulder", "elbow", "wrist_roll")


def robot(names=NAMES, motors=None):
    """A chain of revolute joints with these names, each with a motor."""
    made = arm(len(names))
    joints = tuple(replace(joint, name=name) for joint, name in zip(made.joints, names, strict=True))
    actuators = tuple(
        replace(one, name=motor, on={name: 1.0})
        for one, motor, name in zip(made.actuators, motors or names, names, strict=True)
    )
    return replace(made, joints=joints, actuators=actuators, measured=tuple(names))


def match(names, mechanism=None, columns=None, drives=None):
    table = Table({name: np.array([float(k)]) for k, name in enumerate(names)})
    return matched(table, slots(mechanism or robot()), columns or {}, "log.csv", drives)


def spelled(pattern, names=NAMES):
    """A pattern with {i}, {i0} or {name} for every joint."""
    each = enumerate(names)
    return [pattern.replace("{i}", str(k + 1)).replace("{i0}", str(k)).replace("{name}", n) for k, n in each]


# Style: time, position, velocity, effort. {i} counts from 1, {i0} from 0.
STYLES = {
    "ROS topics": ("t", "/joint_states/{name}/position", "/joints/{name}/velocity", "/joints/{name}/effort"),
    "JointState": ("time", "joint_states.position.{name}", "joints.velocity.{name}", "joints.effort.{name}"),
    "name first": ("t", "{name}_pos", "{name}_vel", "{name}_torque"),
    "dotted": ("stamp", "{name}.pos", "{name}.vel", "{name}.effort"),
    "kind first": ("t", "pos_{name}", "vel_{name}", "effort_{name}"),
    "UR RTDE": ("timestamp", "actual_q_{i0}", "actual_qd_{i0}", "actual_torque_{i0}"),
    "arrays": ("t", "state.joint_pos[{i0}]", "state.joint_vel[{i0}]", "state.joint_torque[{i0}]"),
    "MuJoCo": ("time", "qpos_{i0}", "qvel_{i0}", "actuator_force_{i0}"),
    "short": ("t", "q{i}", "dq{i}", "tau{i}"),
    "zero-based canonical": ("t", "q_{i0}", "dq_{i0}", "tau_{i0}"),
    "KUKA with units": ("Time [s]", "J{i}_position [deg]", "J{i}_velocity [deg/s]", "J{i}_torque [Nm]"),
    "measured": ("time_s", "measured_position_{i}", "measured_velocity_{i}", "measured_torque_{i}"),
    "greek": ("t", "theta_{i}", "theta_dot_{i}", "motor_torque_{i}"),
    "camel case": ("timeStamp", "joint{i}Position", "joint{i}Velocity", "joint{i}Torque"),
    "units as words": ("timestamp_ms", "{name}_angle_deg", "{name}_speed_deg_s", "{name}_torque_mNm"),
    "PlotJuggler": ("__time", "/robot/state/q.{i0}", "/robot/state/qd.{i0}", "/robot/state/tau.{i0}"),
    "Isaac Sim": ("sim_time", "joint_position.{name}", "joint_velocity.{name}", "applied_torque.{name}"),
    "short words": ("unix_time", "{name}.pos", "{name}.vel", "{name}.eff"),
    "fields of a topic": ("/arm/header/stamp", "/arm/position[{i0}]", "/arm/vel[{i0}]", "/arm/effort[{i0}]"),
    "side of the load": ("t_s", "load_position_{i}", "load_velocity_{i}", "load_torque_{i}"),
    "servo load": ("time", "present_position_{name}", "present_velocity_{name}", "present_load_{name}"),
    "Franka": ("time", "robot_state.q[{i0}]", "robot_state.dq[{i0}]", "robot_state.tau_J[{i0}]"),
    "LabVIEW": ("Time (s)", "Axis {i} Position (rad)", "Axis {i} Velocity (rad/s)", "Axis {i} Torque (Nm)"),
    "dSPACE": ("Time", "Model Root/q_{i}[rad]/Out1", "Model Root/qd_{i}/Out1", "Model Root/tau_{i}[Nm]/Out1"),
    "ABB EGM": ("time_ms", "joint{i}_deg", "joint{i}_velocity_deg_s", "motor_torque{i}_Nm"),
    "Stäubli": ("Time [s]", "Pos_J{i} [deg]", "Vel_J{i} [deg/s]", "Trq_J{i} [N.m]"),
    "PyBullet": ("timeStamp", "jointPosition_{i0}", "jointVelocity_{i0}", "appliedJointMotorTorque_{i0}"),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_naming_style_is_matched_without_help(style):
    time, *patterns = STYLES[style]
    columns = [time, *(name for pattern in patterns for name in spelled(pattern))]
    found = match([*columns, "temperature_1", "temperature_2", "mode"])
    expected = {"t": time}
    for quantity, pattern in zip(("q", "dq", "tau"), patterns, strict=True):
        expected |= {f"{quantity}_{k + 1}": name for k, name in enumerate(spelled(pattern))}
    assert {key: column.name for key, column in found.chosen.items()} == expected
    assert all(0.5 < one.confidence <= 1.0 for one in found.guesses)


# Whole recordings: all columns that a program writes, and those that are taken as t, q, dq, q_ref and tau.
RECORDERS = {
    "UR RTDE": (
        "timestamp target_q_{i0} target_qd_{i0} target_qdd_{i0} target_current_{i0} target_moment_{i0}"
        " actual_q_{i0} actual_qd_{i0} actual_current_{i0} actual_current_window_{i0}"
        " joint_control_output_{i0} actual_TCP_pose_{i0} actual_TCP_force_{i0}"
        " joint_temperatures_{i0} actual_joint_voltage_{i0}",
        ("timestamp", "actual_q_{i0}", "actual_qd_{i0}", "target_q_{i0}", "actual_current_{i0}"),
    ),
    "UR RTDE without currents": (
        "timestamp target_q_{i0} actual_q_{i0} target_moment_{i0}",
        ("timestamp", "actual_q_{i0}", None, "target_q_{i0}", "target_moment_{i0}"),
    ),
    "UR RTDE 5.23": (
        "timestamp actual_q_{i0} actual_qd_{i0} actual_current_{i0} actual_current_as_torque_{i0}"
        " target_moment_{i0}",
        ("timestamp", "actual_q_{i0}", "actual_qd_{i0}", None, "actual_current_as_torque_{i0}"),
    ),
    "KUKA RSI": (
        "IPOC AIPos.A{i} ASPos.A{i} MACur.A{i} RIst.X Delay.D",
        ("IPOC", "AIPos.A{i}", None, "ASPos.A{i}", "MACur.A{i}"),
    ),
    "KUKA FRI": (
        "time measuredJointPosition{i} ipoJointPosition{i} measuredTorque{i} commandedTorque{i}"
        " externalTorque{i}",
        ("time", "measuredJointPosition{i}", None, "ipoJointPosition{i}", "measuredTorque{i}"),
    ),
    "LCM of Drake": (
        "utime joint_position_measured[{i0}] joint_position_commanded[{i0}] joint_velocity_estimated[{i0}]"
        " joint_torque_measured[{i0}] joint_torque_commanded[{i0}] joint_torque_external[{i0}]",
        ("utime", "joint_position_measured[{i0}]", "joint_velocity_estimated[{i0}]",
         "joint_position_commanded[{i0}]", "joint_torque_measured[{i0}]"),
    ),
    "Drake": (
        "time state_estimated_q_{i0} state_estimated_v_{i0} torque_measured_{i0} torque_commanded_{i0}",
        ("time", "state_estimated_q_{i0}", "state_estimated_v_{i0}", None, "torque_measured_{i0}"),
    ),
    "Unitree": (
        "time /lowstate/motor_state[{i0}]/q /lowstate/motor_state[{i0}]/dq"
        " /lowstate/motor_state[{i0}]/tau_est /lowstate/motor_state[{i0}]/temperature"
        " /lowcmd/motor_cmd[{i0}]/q /lowcmd/motor_cmd[{i0}]/tau",
        ("time", "/lowstate/motor_state[{i0}]/q", "/lowstate/motor_state[{i0}]/dq",
         "/lowcmd/motor_cmd[{i0}]/q", "/lowstate/motor_state[{i0}]/tau_est"),
    ),
    "Franka": (
        "time q[{i0}] q_d[{i0}] dq[{i0}] dq_d[{i0}] tau_J[{i0}] tau_J_d[{i0}] dtau_J[{i0}]"
        " tau_ext_hat_filtered[{i0}]",
        ("time", "q[{i0}]", "dq[{i0}]", "q_d[{i0}]", "tau_J[{i0}]"),
    ),
    "TwinCAT": (
        "Time;Axes.Axis {i}.ActPos;Axes.Axis {i}.ActVelo;Axes.Axis {i}.ActTorque;Axes.Axis {i}.SetPos"
        ";Axes.Axis {i}.PosDiff;Axes.Axis {i}.SetVelo",
        ("Time", "Axes.Axis {i}.ActPos", "Axes.Axis {i}.ActVelo", "Axes.Axis {i}.SetPos",
         "Axes.Axis {i}.ActTorque"),
    ),
    "Fanuc": (
        "Time(ms);J{i} Pos (deg);J{i} Vel (deg/s);J{i} Torque (Nm);J{i} Disturbance Torque (%)",
        ("Time(ms)", "J{i} Pos (deg)", "J{i} Vel (deg/s)", None, "J{i} Torque (Nm)"),
    ),
    "LeRobot as a table": (
        "timestamp frame_index observation.state.{name}.pos observation.effort.{name}.effort"
        " action.{name}.pos",
        ("timestamp", "observation.state.{name}.pos", None, "action.{name}.pos",
         "observation.effort.{name}.effort"),
    ),
    "Isaac Lab": (
        "sim_time joint_pos/{name} joint_vel/{name} applied_torque/{name} computed_torque/{name}"
        " joint_pos_target/{name}",
        ("sim_time", "joint_pos/{name}", "joint_vel/{name}", "joint_pos_target/{name}",
         "applied_torque/{name}"),
    ),
    "PlotJuggler of a controller": (
        "__time /jtc/state/{name}/desired/positions /jtc/state/{name}/actual/positions"
        " /jtc/state/{name}/error/positions /joint_states/{name}/effort",
        ("__time", "/jtc/state/{name}/actual/positions", None, "/jtc/state/{name}/desired/positions",
         "/joint_states/{name}/effort"),
    ),
    "only units": (
        "Time (s);J{i} (deg);J{i} (deg/s);J{i} (Nm);J{i} (degC)",
        ("Time (s)", "J{i} (deg)", "J{i} (deg/s)", None, "J{i} (Nm)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", RECORDERS)
def test_a_whole_recording_is_matched_measured_before_commanded(program):
    columns, wanted = RECORDERS[program]
    patterns = columns.split(";" if ";" in columns else " ")
    names = [name for pattern in patterns for name in (spelled(pattern) if "{" in pattern else [pattern])]
    found = match(names).chosen
    expected = {"t": wanted[0]}
    for quantity, pattern in zip(("q", "dq", "q_ref", "tau"), wanted[1:], strict=True):
        if pattern:
            expected |= {f"{quantity}_{k + 1}": name for k, name in enumerate(spelled(pattern))}
    assert {key: column.name for key, column in found.items()} == expected


def test_currents_beside_commanded_efforts_are_taken_and_both_are_named():
    names = ["t", *spelled("q_{i}"), *spelled("target_moment_{i}"), *spelled("current_{i}")]
    found = match(names)
    assert found.chosen["tau_1"].name == "current_1"
    (said,) = found.notices
    assert said.code == "effort-from-current"
    assert "commanded efforts (target_moment_1, target_moment_2, target_moment_3)" in said.text
    chosen = match(names, columns={"tau_{i}": "target_moment_{i}"})
    assert chosen.notices == ()


@pytest.mark.parametrize("column", ["current_{i}", "I_{i} [A]", "{name}_mA", "motor_{i} (mA)"])
def test_currents_that_are_mapped_by_hand_need_a_constant_too(column):
    names = ["t", *spelled("q_{i}"), *spelled(column)]
    mapped = {f"tau_{k + 1}": name for k, name in enumerate(spelled(column))}
    assert [one.code for one in match(names, columns=mapped).notices] == ["effort-from-current"]
    scaled = {key: ColumnMap(name, scale=11.9) for key, name in mapped.items()}
    assert match(names, columns=scaled).notices == ()
    drives = {"*": DriveSettings(torque_constant=0.1)}
    assert match(names, columns=mapped, drives=drives).notices == ()
    said = {key: ColumnMap(name, unit="Nm") for key, name in mapped.items()}
    assert match(names, columns=said).notices == ()


def test_the_scale_of_currents_and_loads_is_doubted_but_not_that_of_torques():
    codes = {}
    for effort in ("load_{i}", "current_{i}", "load_torque_{i}"):
        found = match(["t", *spelled("pos_{i}"), *spelled(effort)])
        codes[effort] = [item.code for item in found.notices]
    assert codes == {
        "load_{i}": ["effort-from-current"],
        "current_{i}": ["effort-from-current"],
        "load_torque_{i}": [],
    }


@pytest.mark.parametrize(
    "effort",
    ["torque_{i} (%)", "ActualTorque{i}_permille", "{name}_torque_pct", "tau_{i} [%]"],
)
def test_the_scale_of_a_share_of_a_rated_torque_is_doubted(effort):
    names = ["t", *spelled("pos_{i}"), *spelled(effort)]
    assert [one.code for one in match(names).notices] == ["effort-from-current"]
    torques = match([*names, *spelled("torque_{i}_Nm")])
    assert torques.chosen["tau_1"].name == "torque_1_Nm"
    assert torques.notices == ()


@pytest.mark.parametrize(
    "effort",
    ["torque_model_{name}", "model_torque_{i}", "predicted_torque_{i}", "tau_g_{i}", "torque_rate_{i}"],
)
def test_efforts_of_a_model_are_not_taken_as_measured(effort):
    found = match(["t", *spelled("pos_{i}"), *spelled(effort)])
    assert not [key for key in found.chosen if key.startswith("tau")]


@pytest.mark.parametrize(
    ("effort", "unit"),
    [
        ("torque_{i} [kgf.cm]", "kgfcm"),
        ("torque_{i} (lb-ft)", "lbfft"),
        ("torque_mNm_{i}", "mNm"),
        ("torque_Nm_{name}", "Nm"),
        ("torque_A{i}", None),  # an axis, no ampere
    ],
)
def test_units_of_efforts(effort, unit):
    found = match(["t", *spelled("pos_{i}"), *spelled(effort)])
    assert found.chosen["tau_2"].name == spelled(effort)[1]
    assert found.chosen["tau_2"].unit == unit
    assert found.notices == ()


@pytest.mark.parametrize(
    ("position", "unit"),
    [
        ("pos_deg_{i}", "deg"),
        ("pos_deg_{name}", "deg"),
        ("pos_{i} [turns]", "rev"),
        ("q_{i} (filtered)", None),
        ("pos_{i} [measured]", None),
    ],
)
def test_units_of_positions(position, unit):
    found = match(["t", *spelled(position), *spelled("vel_{i} [deg/sec]"), *spelled("torque_{i}")])
    assert found.chosen["q_2"].unit == unit
    assert found.chosen["dq_2"].unit == "deg/s"


@pytest.mark.parametrize(
    ("plain", "strange"),
    [("tau_{i}", "tau_{i} [foo]"), ("q_{i}", "q_{i} [grad]"), ("dq_{i}", "dq_{i} (deg/h)"), ("t", "t (min)")],
)
def test_a_unit_that_is_not_known_is_refused(plain, strange):
    names = ["t", *spelled("q_{i}"), *spelled("dq_{i}"), *spelled("tau_{i}")]
    other = dict(zip(spelled(plain), spelled(strange), strict=True))
    with pytest.raises(InputError, match=r"the unit '(foo|grad|deg/h|min)' of .* is not known"):
        match([other.get(name, name) for name in names], columns={"t": "t (min)"} if plain == "t" else None)


def test_numbers_from_0_with_more_columns_than_joints_are_refused():
    """A gripper at either end: q_1 .. q_3 would be those of other joints."""
    four = [f"{kind}_{k}" for kind in ("q", "tau") for k in range(4)]
    with pytest.raises(InputError, match=r"may begin at 0 or at 1 \(4 columns, 3 joints\)") as caught:
        match(["t", *four])
    assert "'q_{i}=q_{i0}'" in caught.value.remedy
    chosen = match(["t", *four], columns={"q_{i}": "q_{i0}", "tau_{i}": "tau_{i0}"}).chosen
    assert chosen["q_1"].name == "q_0"


def test_a_header_numbered_from_0_and_1_is_refused_with_a_pattern_that_works():
    columns = ["t", *spelled("pos_{i0}"), *spelled("torque_{i}")]
    with pytest.raises(InputError, match=r"columns=\{'q_\{i\}': 'pos_\{i0\}'\}"):
        match(columns)


def test_order_of_columns_does_not_matter_and_names_follow_the_joints():
    columns = [
        "t",
        *reversed(spelled("{name}_pos")),
        *spelled("effort_{name}", ("elbow", "wrist_roll", "shoulder")),
    ]
    chosen = match(columns).chosen
    assert chosen["q_1"].name == "shoulder_pos"
    assert chosen["tau_3"].name == "effort_wrist_roll"


AMBIGUOUS = {
    "two families of positions": [*spelled("pos_{i}"), *spelled("pos_filtered_{i}"), *spelled("torque_{i}")],
    "two robots in one file": [*spelled("robot_1_q_{i}"), *spelled("robot_2_q_{i}"), *spelled("tau_{i}")],
    "two topics with positions": [*spelled("/states/{name}/position"), *spelled("/other/{name}/position")],
    "numbers from 0 to n": ["pos_0", "pos_1", "pos_2", "pos_3", *spelled("torque_{i}")],
    "zero- and one-based mixed": [*spelled("pos_{i0}"), *spelled("torque_{i}")],
    "the same after normalisation": [*spelled("{name}_pos"), "elbow.pos", *spelled("{name}_torque")],
    "motor and joint side": [*spelled("motor_pos_{i}"), *spelled("joint_pos_{i}"), *spelled("torque_{i}")],
    "which numbers": [*spelled("{name}_pos"), "torque_1", "torque_2"],
    "two clocks": [*spelled("q_{i}"), *spelled("tau_{i}"), "header_stamp", "timestamp"],
}  # fmt: skip


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_header_is_refused_with_the_candidates(case):
    columns = AMBIGUOUS[case]
    with pytest.raises(InputError) as caught:
        match([*([] if case == "two clocks" else ["t"]), *columns])
    shown = caught.value.message
    assert sum(name in shown for name in columns) >= 2, shown
    assert "may be" in shown
    assert "--column" in shown
    assert "columns={" in str(caught.value)


def test_joints_whose_names_begin_alike_have_their_own_columns():
    names = ("arm", "arm_elbow", "arm_elbow_2")
    columns = ["t", *spelled("{name}_pos", names), *spelled("{name}_torque", names)]
    chosen = match(columns, robot(names)).chosen
    assert [chosen[f"q_{k}"].name for k in (1, 2, 3)] == spelled("{name}_pos", names)
    # The longest name counts: no column is left for `arm`.
    assert "q_1" not in match(["t", *columns[2:4]], robot(names)).chosen


def test_numbered_joint_names_and_columns_from_zero_are_not_confused():
    names = ("joint_1", "joint_2", "joint_3")
    columns = ["t", *spelled("{name}_pos", names), "joint_0_effort", "joint_1_effort", "joint_2_effort"]
    with pytest.raises(InputError, match="numbers are not those of the motors"):
        match(columns, robot(names))


def test_numbers_of_joints_in_another_order_are_refused():
    names = ("joint_3", "joint_1", "joint_2")
    with pytest.raises(InputError, match="in the order joint_3, joint_1, joint_2"):
        match(["t", *spelled("pos_{i}")], robot(names))
    assert match(["t", *spelled("{name}_pos", names)], robot(names)).chosen["q_1"].name == "joint_3_pos"


def test_canonical_names_win_and_are_no_guess():
    found = match(
        ["t", *spelled("q_{i}"), *spelled("q_meas_{i}"), *spelled("tau_{i}"), *spelled("current_{i}")]
    )
    assert found.chosen["q_1"].name == "q_1"
    assert found.guesses == found.notices == ()


def test_motors_are_found_by_the_joint_that_they_drive():
    mechanism = robot(motors=("m_a", "m_b", "m_c"))
    assert match(["t", *spelled("effort_{name}")], mechanism).chosen["tau_2"].name == "effort_elbow"


def test_what_all_joint_names_share_may_be_left_out():
    names = ("ur5_shoulder_joint", "ur5_elbow_joint", "ur5_wrist_joint")
    columns = ["t", "shoulder_pos", "elbow_pos", "wrist_pos"]
    assert match(columns, robot(names)).chosen["q_2"].name == "elbow_pos"


def test_references_other_frames_and_errors_are_not_positions():
    more = [
        "target_q_0",
        "target_q_1",
        "target_q_2",
        *spelled("actual_TCP_speed_{i0}"),
        *spelled("pos_error_{i}"),
    ]
    found = match(["t", *spelled("actual_q_{i0}"), *more, *spelled("tau_{i0}"), *spelled("tau_ext_{i0}")])
    assert found.chosen["q_1"].name == "actual_q_0"
    assert found.chosen["q_ref_1"].name == "target_q_0"
    assert not any(key.startswith("dq") for key in found.chosen)
    assert found.chosen["tau_1"].name == "tau_0"


def test_units_of_the_header_are_honoured(tmp_path):
    columns = recording(count=2)
    header = {
        "t": "Time (ms)",
        "q_1": "A1_pos [deg]",
        "q_2": "A2_pos [deg]",
        "tau_1": "A1_trq_mNm",
        "tau_2": "A2_trq_mNm",
    }
    factors = {"t": 1e3, "q_1": 180 / np.pi, "q_2": 180 / np.pi, "tau_1": 1e3, "tau_2": 1e3}
    log = log_from_columns({header[key]: x * factors[key] for key, x in columns.items()}, arm())
    for name, index in (("q", 0), ("tau", 1)):
        # Rounding of one product and one quotient.
        assert np.allclose(getattr(log, name)[:, index], columns[f"{name}_{index + 1}"], rtol=1e-12)
    assert log.dt == pytest.approx(0.004)
    assert "q_1 from 'A1_pos [deg]' in deg (" in log.choices["columns by their names"]


def test_a_unit_that_does_not_fit_is_no_position():
    assert "q_1" not in match(["t", *spelled("{name}_pos [A]")]).chosen
    sliding = replace(robot(), joints=tuple(replace(one, kind=JointKind.PRISMATIC) for one in robot().joints))
    assert match(["t", *spelled("{name}_pos [mm]")], sliding).chosen["q_1"].unit == "mm"


def test_currents_are_taken_as_efforts_with_a_warning():
    columns = ["t", *spelled("q_{i}"), *spelled("current_{i} [mA]")]
    found = match(columns)
    assert found.chosen["tau_1"] == ColumnMap("current_1 [mA]", "mA")
    assert [one.code for one in found.notices] == ["effort-from-current"]
    assert match(columns, drives={"*": DriveSettings(torque_constant=0.1)}).notices == ()
    torque = match([*columns, *spelled("torque_{i}")])
    assert torque.chosen["tau_1"].name == "torque_1"


def test_efforts_that_belong_to_no_motor_are_noticed():
    found = match(["t", *spelled("q_{i}"), *spelled("tau_{i}"), "tau_4"])
    assert [one.code for one in found.notices] == ["effort-unmatched"]
    assert "tau_4" in found.notices[0].text
    other = match(
        ["t", *spelled("{name}_pos"), "shoulder_effort", "elbow_effort", "hand_effort", "gripper_effort"]
    )
    assert [one.code for one in other.notices] == ["effort-unmatched"]
    assert other.notices[0].text.endswith("are not used: hand_effort")


def test_patterns_name_the_columns_of_all_joints():
    columns = ["t", *spelled("a_{i0}_x"), *spelled("trq_of_{name}")]
    given = {"q_{i}": ColumnMap("a_{i0}_x", unit="deg"), "tau_{i}": "trq_of_{name}", "tau_2": "trq_of_elbow"}
    chosen = match(columns, columns=given).chosen
    assert chosen["q_3"] == ColumnMap("a_2_x", "deg")
    assert chosen["tau_3"].name == "trq_of_wrist_roll"


@pytest.mark.parametrize(
    ("key", "column", "message"),
    [
        ("q_{i}", "b_{i}", "no column of the pattern 'b_{i}'"),
        ("q_{i}", "a_0_x", "the same column for every joint"),
        ("x_{i}", "a_{i}", "not a pattern of this robot's quantities"),
    ],
)
def test_wrong_patterns_are_refused(key, column, message):
    with pytest.raises(InputError, match=message):
        match(["t", *spelled("a_{i0}_x")], columns={key: column})


def test_drives_scale_counts_gears_and_currents():
    drive = DriveSettings(ratio=100.0, counts_per_turn=4096, torque_constant=0.1)
    columns = ["t", *spelled("q_{i}"), *spelled("tau_{i}")]
    chosen = match(columns, drives={"elbow": drive}).chosen
    # 409600 counts are one turn of the joint; 1 A is 0.1 N m at the motor, 10 N m at the joint.
    assert chosen["q_2"].scale * 409600 == pytest.approx(math.tau)
    assert chosen["tau_2"].scale == pytest.approx(10.0)
    assert chosen["q_1"].scale == chosen["tau_1"].scale == 1.0
    joint = match(columns, drives={"*": drive.changed(encoder="joint", counts_per_turn=None)}).chosen
    assert joint["q_2"].scale == 1.0
    # Power is the same on both sides of a gear.
    assert drive.scale("dq", "rad/s") * drive.scale("tau", "Nm") == pytest.approx(1.0)


def test_drives_of_unknown_joints_are_refused():
    with pytest.raises(InputError, match="'elbw' matches no joint and no motor; did you mean 'elbow'"):
        match(["t", *spelled("q_{i}")], drives={"elbw": DriveSettings(ratio=2.0)})


@pytest.mark.parametrize(
    ("text", "key", "column"),
    [
        ("q_1=pos_1", "q_1", ColumnMap("pos_1")),
        ("tau_1=current_1*11.9", "tau_1", ColumnMap("current_1", scale=11.9)),
        ("tau_1=i*0.5*-4 + 0.25", "tau_1", ColumnMap("i", scale=-2.0, offset=0.25)),
        ("q_1=pos_1[deg]-1.5e0", "q_1", ColumnMap("pos_1", "deg", offset=-1.5)),
        ("q_1=state.pos[2]", "q_1", ColumnMap("state.pos[2]")),
        ("q_1=state.pos[2][mrad]*2", "q_1", ColumnMap("state.pos[2]", "mrad", 2.0)),
        ("q_1=axis-2", "q_1", ColumnMap("axis-2")),
        ("q_1=axis - 2", "q_1", ColumnMap("axis", offset=-2.0)),
        ("tau_{i}=effort_{name}", "tau_{i}", ColumnMap("effort_{name}")),
        ("tau_{i}=tau_{i} delay 0.003", "tau_{i}", ColumnMap("tau_{i}", delay=0.003)),
        ("tau_1=i[mA]*2 - 1 delay -4e-3", "tau_1", ColumnMap("i", "mA", 2.0, -1.0, -0.004)),
        ("q_1=my delay", "q_1", ColumnMap("my delay")),
    ],
)
def test_columns_on_the_command_line(text, key, column):
    assert column_of(text) == (key, column)


@pytest.mark.parametrize("text", ["q_1", "=pos", "q_1=", "q_1=pos*0"])
def test_columns_that_cannot_be_read_are_refused(text):
    with pytest.raises(InputError):
        column_of(text)


def test_a_column_with_its_unit_in_the_header_may_be_named_without_it():
    given = {"q_1": ColumnMap("J1", "deg"), "q_2": "J2 [deg]", "q_3": "J3 [deg]"}
    assert match(["t", "J1 [deg]", "J2 [deg]", "J3 [deg]"], columns=given).chosen["q_1"].name == "J1 [deg]"


def test_the_unit_at_the_end_of_a_mapped_name_counts_as_when_it_is_guessed() -> None:
    names = ["t", "swivel_deg", "second", "third_rev"]
    given = {"q_1": "swivel_deg", "q_2": "second", "q_3": "third_rev"}
    chosen = match(names, columns=given).chosen
    assert [chosen[f"q_{i}"].unit for i in (1, 2, 3)] == ["deg", None, None]
    plain = match(names, columns={**given, "q_1": ColumnMap("swivel_deg", "rad")}).chosen
    assert plain["q_1"].unit == "rad"


@pytest.fixture
def odd_log(tmp_path):
    """An arm as URDF, and a log of it with columns of a ROS topic."""
    shutil.copy(Path(str(files("dynid.robots"))) / "ur5.urdf", tmp_path / "arm.urdf")
    joints = load_robot(tmp_path / "arm.urdf").measured
    columns = recording(count=6)
    words = {"q": "position", "tau": "effort"}
    odd = {"stamp": columns.pop("t")}
    for key, x in columns.items():
        quantity, _, number = key.partition("_")
        odd[f"/joint_states/{joints[int(number) - 1]}/{words[quantity]}"] = x
    write_csv(tmp_path / "run.csv", odd)
    return tmp_path


def test_the_experiment_of_the_options_is_written_and_reads_the_same(odd_log, monkeypatch):
    monkeypatch.chdir(odd_log)
    (odd_log / "inner").mkdir()
    options = (
        "--from 0.5 --to 3 --payload tool=1.5 --known Ia_elbow_joint=0.1 --estimator ols --drop-bad-rows"
    )
    arguments = [
        "identify",
        "--robot",
        "arm.urdf",
        "--log",
        "run.csv",
        "--validate",
        "run.csv",
        *options.split(),
    ]
    file = "inner/arm.yaml"
    result = CliRunner().invoke(main, [*arguments, "--write-experiment", file])
    assert result.exit_code == 0, result.output
    assert "/joint_states/elbow_joint/effort" in result.output
    assert not (odd_log / "results").exists()
    written = read_experiment(file)
    assert written.columns["tau_3"].name == "/joint_states/elbow_joint/effort"
    assert written.known == {"Ia_elbow_joint": 0.1, "M_tool": 1.5}
    assert (written.logs[0].start, written.logs[0].stop, written.logs[0].payloads) == (0.5, 3.0, ("tool",))
    assert (written.estimator, written.drop_bad_rows, written.validate[0].start) == ("ols", True, None)
    logs = read_logs(written)
    assert [log.guesses for log in logs] == [(), ()]
    assert logs[0].t[logs[0].valid][0] == pytest.approx(0.5)
    assert "exists already" in CliRunner().invoke(main, [*arguments, "--write-experiment", file]).output
    checked = ["check", "arm.urdf", "run.csv", "--write-experiment", "checked.yaml"]
    assert CliRunner().invoke(main, checked).exit_code == 0
    assert read_experiment("checked.yaml").columns == written.columns


def test_known_values_of_the_experiment_reach_their_owners(odd_log):
    asked = with_options(
        Experiment(robot=str(odd_log / "arm.urdf")), known=["Fv_elbow_joint=3"], payloads=["tool=2"]
    )
    made = as_asked(load_robot(asked.robot), asked)
    assert made.payloads["tool"].known == {"M": 2.0}
    assert made.payloads["tool"].body == "wrist_3_link"
    assert made.known == {"Fv_elbow_joint": 3.0}
    for wrong, message in (("M_tol=1", "did you mean 'M_tool'"), ("M_tool=-1", "physically impossible")):
        bad = with_options(asked, known=[wrong])
        with pytest.raises(InputError, match=message):
            as_asked(load_robot(bad.robot), bad)


def test_efforts_beside_mapped_ones_are_found_by_the_names_of_their_joints() -> None:
    """Two exchanged efforts are mapped as the remedy says; the third keeps the column with its name."""
    names = ["time", *(f"{joint}.{kind}" for kind in ("pos", "torque") for joint in NAMES)]
    columns = {"tau_1": "elbow.torque", "tau_2": "shoulder.torque"}
    found = match(names, columns=columns)
    assert [found.chosen[f"tau_{i}"].name for i in (1, 2, 3)] == [
        "elbow.torque",
        "shoulder.torque",
        "wrist_roll.torque",
    ]


def test_an_offset_close_to_its_column_is_one_if_the_file_has_that_column():
    names = ("q_2", "axis", "axis-2")
    assert in_file(ColumnMap("q_2-1.57"), names) == ColumnMap("q_2", offset=-1.57)
    assert in_file(ColumnMap("axis-2"), names) == ColumnMap("axis-2")
    assert in_file(ColumnMap("axis-3"), names) is None  # a mistyped name is no offset
    assert in_file(ColumnMap("q_3-1.57"), names) is None


def test_an_entry_without_a_name_changes_the_column_that_is_found_without_it() -> None:
    """Of any name: that of a joint, an own one of a pattern, or numbered from 0."""
    turned, late = ColumnMap("q_2", scale=-1.0), ColumnMap("tau_{i}", delay=0.003)
    by_joint = [f"{symbol}_{name}" for symbol in ("q", "tau") for name in NAMES]
    found = match(["t", *by_joint], columns={"q_2": turned, "tau_{i}": late}).chosen
    assert found["q_2"] == ColumnMap(f"q_{NAMES[1]}", scale=-1.0)
    assert found["q_1"] == ColumnMap(f"q_{NAMES[0]}")
    assert all(found[f"tau_{k + 1}"] == ColumnMap(f"tau_{name}", delay=0.003) for k, name in enumerate(NAMES))
    own = {"q_{i}": ColumnMap("meas_{name}", "deg", 3.0, 1.0), "q_2": turned}
    found = match(["t", *by_joint[len(NAMES) :], *(f"meas_{name}" for name in NAMES), "q_2"], columns=own)
    assert found.chosen["q_2"] == ColumnMap(f"meas_{NAMES[1]}", "deg", -3.0, -1.0)
    assert found.chosen["q_1"] == ColumnMap(f"meas_{NAMES[0]}", "deg", 3.0, 1.0)
    from_zero = ["t", *(f"{symbol}_{k}" for symbol in ("q", "tau") for k in range(len(NAMES)))]
    assert match(from_zero, columns={"q_2": turned}).chosen["q_2"] == ColumnMap("q_1", scale=-1.0)
    late_time = {"t": ColumnMap("t", "ms")}
    assert match(["time", *by_joint], columns=late_time).chosen["t"] == ColumnMap("time", "ms")


def test_an_entry_without_a_name_and_without_a_column_is_refused() -> None:
    by_joint = [f"{symbol}_{name}" for symbol in ("q", "tau") for name in NAMES]
    with pytest.raises(InputError, match="'dq_2'"):
        match(["t", *by_joint], columns={"dq_2": ColumnMap("dq_2", scale=-1.0)})
    both = {key: ColumnMap(key, scale=-1.0) for key in ("q_2", f"q_{NAMES[1]}")}
    with pytest.raises(InputError, match="same quantity"):
        match(["t", *by_joint], columns=both)
    some = match(["t", *by_joint[:-1]], columns={"tau_{i}": ColumnMap("tau_{i}", scale=-1.0)}).chosen
    assert f"tau_{len(NAMES)}" not in some
    assert some["tau_1"].scale == -1.0
