"""Force/torque sensors: experiment files, biases, wrong logs, exported compensation."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.cases.force_sensor.case import with_force_sensor
from dynid.cases.force_sensor.compensation import compensate_imu, compensate_joints
from dynid.cases.force_sensor.compensation_export import compensation_document, compensation_files
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, experiment_from, read_experiment
from dynid.mechanism.force_sensor import COMPONENTS, ForceSensor, read_force_sensor, sensor_document, turn
from dynid.mechanism.frame import Frame, identity_frame, rpy_matrix
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify, identify_logs, prepare, run_experiment, validate_result
from dynid.report.numbers import value_text
from dynid.report.output import write_results
from dynid.statistics.estimate import Estimate
from dynid.statistics.uncertainty import student_t
from tests.arms import write_csv
from tests.built_in import codes
from tests.wrist import BIAS, NOISE, SENSOR, TOOL, Setup, tool_values, wrist_log, wrist_motion, wrist_samples

RATE = 50.0
RUNS = [(0, 250), (250, 500), (500, 750), (750, 1000)]


def identified(robot, *logs, **options) -> Estimate:
    options = {"estimator": "consistent", **options}
    return identify_logs(robot, list(logs), experiment=Experiment(robot=robot, **options))


@cache
def plain() -> Estimate:
    """The result of the log as it should be."""
    return identified(*wrist_log(rate=RATE))


def told(found: Estimate, code: str) -> str:
    return next(notice.text for notice in found.warnings if notice.code == code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A log file and an experiment as a user writes them."""
    place = tmp_path_factory.mktemp("wrist")
    t, truth, q = wrist_samples(Setup(), rate=RATE)
    rng = np.random.default_rng(1)
    for name in ("wrist", "other"):
        measured = truth.wrench + BIAS + NOISE * rng.standard_normal((len(t), 6))
        columns = {"t": t} | {f"q_{i + 1}": q[:, i] for i in range(7)}
        columns |= dict(zip(COMPONENTS, measured.T, strict=True))
        write_csv(place / f"{name}.csv", columns)
    (place / "wrist.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return place


EXPERIMENT = """
robot: panda
logs: [wrist.csv]
validate: [other.csv]
force_sensor: {body: link_7, xyz: [0, 0, 0.107], rpy: [0, 0, pi/4], tool: gripper}
"""


@pytest.fixture(scope="module")
def result(folder) -> Estimate:
    return run_experiment(read_experiment(folder / "wrist.yaml"))


def test_a_file_of_columns_gives_tool_and_bias(result) -> None:
    assert (result.model, result.estimator) == ("wrench", "consistent")
    names = [one.name for one in result.parameters]
    assert names == [
        *(f"Off_{name}" for name in COMPONENTS),
        *tool_values(name="gripper"),
    ]
    for name, true in tool_values(name="gripper").items():
        # Six deviations: chance does not get there.
        assert abs(result[name].value - true) < 6 * result[name].sigma
    assert {one.unit for one in result.parameters[:6]} == {"N", "N m"}
    assert result.choices["load gripper"].startswith(
        value_text(result["M_gripper"].value, 0.5 * np.ptp(result["M_gripper"].ci95)) + " +- "
    )
    centre = 1e3 * result["MZ_gripper"].value / result["M_gripper"].value
    assert f"{centre:.2f}) +- (" in result.choices["load gripper"]
    assert not set(codes(result)) & {"wrench-frame", "bias-drift", "rotation-little", "generic-prior"}


def test_other_logs_are_predicted_as_measured(result) -> None:
    one = result.validation[0]
    # 0.5 N and 0.02 N m of noise on readings of 10 N and 0.4 N m are 5 %, filtered less.
    assert one.independent
    assert one.residual_percent < 5.0
    assert [group.name for group in one.groups] == list(COMPONENTS)


def test_a_saved_result_predicts_and_its_compensation_runs_alone(folder, result, tmp_path) -> None:
    write_results(result, tmp_path / "out")
    found, _ = validate_result(tmp_path / "out", [folder / "other.csv"])
    # The same prediction by the same filters.
    assert found[0].residual_percent == pytest.approx(result.validation[0].residual_percent, rel=1e-6)
    spec = importlib.util.spec_from_file_location("alone", tmp_path / "out" / "compensation.py")
    alone = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)
    parameters = alone.read(tmp_path / "out" / "compensation.json")
    assert parameters["tool"]["mass"] == result["M_gripper"].value
    t, truth, _ = wrist_samples(Setup(), rate=5.0)
    motion = wrist_motion()
    for i in range(len(t)):
        at = t[i : i + 1]
        state = (motion.q(at)[0], motion.dq(at)[0], motion.ddq(at)[0])
        left = alone.compensate_joints(parameters, truth.wrench[i] + BIAS, *state)
        # No contact: what is left is the error of the parameters, deviations of 0.01 N and 5e-4 N m.
        assert np.all(np.abs(left) < np.repeat([0.2, 0.01], 3))


def test_exported_program_needs_nothing_but_python(result) -> None:
    program = result.files["compensation.py"]
    imports = [line for line in program.splitlines() if line.startswith(("import", "from"))]
    allowed = ("__future__", "json", "math", "collections.abc", "pathlib", "typing")
    assert all(any(f" {name} " in f"{line} " for name in allowed) for line in imports)
    assert "dynid." not in program.replace("dynid.compensation/1", "")


def test_compensation_has_no_odd_names_and_numbers() -> None:
    robot, log = wrist_log(rate=RATE)
    problem = prepare(robot, [log], Experiment(robot=robot))
    chi = np.ones(len(problem.parameters))
    assert set(compensation_files(problem, chi)) == {"compensation.py", "compensation.json"}
    with pytest.raises(InputError, match="not finite"):
        compensation_files(problem, chi * np.nan)
    odd = replace(problem, mechanism=replace(robot, name='x"; import os\n'))
    assert compensation_document(odd, chi)["robot"] == "x___import_os_"


def test_compensation_reads_no_other_file(tmp_path) -> None:
    from dynid.cases.force_sensor.compensation import read

    (tmp_path / "a.json").write_text(json.dumps({"schema": "other"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"dynid\.compensation/1"):
        read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{body: link_7, bais: none}", "bias"),
        ("{body: link_7, bias: segments}", "segment"),
        ("{body: link_7, mounting: rpz}", "rpy"),
        ("{body: link_7, gravity: estimated}", "estimate"),
        ("{body: link_7, sign: loads}", "load"),
        ("{xyz: [0, 0, 0]}", "'body' is missing"),
        ("{body: link_7, imu: true, gravity: estimate}", "measures gravity in axes fixed to the sensor"),
        ("{body: link_7, range: {force: 0, moment: 1}}", "not positive"),
        ("{body: link_7, tool: {name: t, known: {M: -1}}}", "negative"),
    ],
)
def test_bad_keys_are_refused_with_the_nearest_name(tmp_path, line: str, said: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(f"robot: panda\nlogs: [a.csv]\nforce_sensor: {line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3") as refused:
        read_experiment(file)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "inverse"}, "model 'wrench'"),
        ({"gains": "all"}, "'gains'"),
        ({"drive": ("Fv",)}, "'drive'"),
        ({"wrench": {"parameters": "principal"}}, "'wrench'"),
    ],
)
def test_options_that_a_sensor_does_not_know(options, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Experiment(robot="panda", force_sensor=SENSOR, **options)


def test_bodies_and_names_are_checked() -> None:
    arm = load_robot("panda")
    with pytest.raises(InputError, match="link_7"):
        with_force_sensor(arm, ForceSensor(body="link7"))
    with pytest.raises(InputError, match="a body of robot"):
        with_force_sensor(arm, ForceSensor(body="link_7", tool="link_6"))
    with pytest.raises(InputError, match="no gravity"):
        with_force_sensor(replace(arm, gravity=np.zeros(3)), replace(SENSOR, gravity="estimate"))


def test_a_sensor_survives_its_record() -> None:
    sensor = replace(SENSOR, imu=None, mounting="rpy", limits=(100.0, 5.0), known={"M": 1.2}, tool="hand")
    again = read_force_sensor(plain_entry(json.loads(json.dumps(sensor_document(sensor)))))
    assert sensor_document(again) == sensor_document(sensor)
    inertial = ForceSensor(imu=Frame(np.eye(3), np.array([0.0, 0.1, 0.0])))
    tree = sensor_document(inertial)
    assert sensor_document(read_force_sensor(plain_entry(tree))) == tree


def test_python_may_describe_the_sensor_plainly() -> None:
    made = {"force_sensor": {"body": "link_7", "xyz": [0, 0, 0.1], "tool": {"known": {"M": 2}}}}
    assert Experiment(robot="panda", **made).estimator == "consistent"
    assert Experiment(robot="panda", estimator="wls", **made).estimator == "wls"
    assert Experiment(robot="panda", **made).force_sensor.known == {"M": 2.0}
    with pytest.raises(InputError, match="bias"):
        experiment_from({"robot": "panda", "force_sensor": {"body": "link_7", "biass": "none"}})


def test_the_other_sign_is_refused_by_gravity() -> None:
    with pytest.raises(InputError, match=r"-1\.3") as refused:
        identified(*wrist_log(rate=RATE, asked=replace(SENSOR, sign="reaction")))
    assert "sign: load" in str(refused.value)


@pytest.mark.parametrize("mounting", ["angle", "rpy"])
def test_the_other_sign_is_refused_though_the_mounting_is_open(mounting: str) -> None:
    with pytest.raises(InputError, match="opposite sign"):
        identified(*wrist_log(rate=RATE, asked=replace(SENSOR, sign="reaction", mounting=mounting)))


@pytest.mark.parametrize("mounting", ["known", "angle", "rpy"])
def test_a_sensor_that_carries_nothing_is_not_blamed_for_its_sign(mounting: str) -> None:
    """Noise alone, with a pull of cables: its fit may be negative, and that is no sign."""
    robot, log = wrist_log(rate=RATE, seconds=10.0, asked=replace(SENSOR, mounting=mounting))
    rng = np.random.default_rng(3)
    cables = 0.02 * log.q[:, [6]] * np.array([1.0, -1.0, 1.0, 0.0, 0.0, 0.0])
    idle = replace(log, tau=NOISE * rng.standard_normal(log.tau.shape) + cables + BIAS)
    assert abs(identified(robot, idle)["M_tool"].value) < 0.1


def test_a_sensor_of_three_forces_tells_mass_and_centre() -> None:
    robot, log = wrist_log(rate=RATE)
    forces = np.column_stack([log.tau[:, :3], np.full((len(log.t), 3), np.nan)])
    present = np.array([True] * 3 + [False] * 3)
    found = identified(robot, replace(log, tau=forces, effort_present=present))
    assert [group.name for group in found.fit.groups] == ["fx", "fy", "fz"]
    for name in ("M_tool", "MX_tool", "MY_tool", "MZ_tool"):
        # Six deviations.
        assert abs(found[name].value - tool_values()[name]) < 6 * found[name].sigma


def test_a_late_wrench_and_a_contact_are_reported() -> None:
    robot, log = wrist_log(rate=RATE)
    late = identified(robot, replace(log, tau=np.roll(log.tau, 1, axis=0)))
    assert "ms" in told(late, "delay")
    touched = log.tau.copy()
    touched[500:515, 2] += 15.0
    assert "burst" in codes(identified(robot, replace(log, tau=touched)))


def test_open_angles_leave_the_measured_side_as_it_was_measured(tmp_path) -> None:
    """Figures of the fit, plots and a saved result are about the readings, not about linearised rows."""
    robot, log = wrist_log(Setup(turned=turn(2, 2.1)), rate=RATE, asked=replace(SENSOR, mounting="angle"))
    found = identified(robot, log)
    # The same noise, the same sizes of readings (turned about z).
    assert found.fit.residual_percent == pytest.approx(plain().fit.residual_percent, rel=0.05)
    shown = found.signals[0].measured
    assert np.nanmax(np.abs(shown)) < 1.05 * np.max(np.abs(log.tau))
    write_results(found, tmp_path / "out")
    predicted, _ = validate_result(tmp_path / "out", [log], robot=load_robot("panda"))
    # The same readings by the same filters.
    assert predicted[0].residual_percent == pytest.approx(found.fit.residual_percent, rel=0.02)
    entry = next(one for one in found.standard if one["name"] == "angle_sensor")
    assert entry["value"] == pytest.approx(found["angle_sensor"].value, abs=1e-12)
    assert found["angle_sensor"].sigma_rel_percent < 1.0


def test_what_is_known_of_the_tool_is_kept() -> None:
    found = identified(*wrist_log(rate=RATE, asked=replace(SENSOR, known={"M": 1.3})))
    assert "M_tool" not in {one.name for one in found.parameters}
    assert json.loads(found.files["compensation.json"])["tool"]["mass"] == 1.3


@cache
def by_segments() -> Estimate:
    """A bias of every segment, and another log to predict."""
    robot, log = wrist_log(rate=RATE, segments=RUNS, asked=replace(SENSOR, bias="segment"))
    _, other = wrist_log(rate=RATE, seed=5, name="other")
    return identify_logs(robot, [log], [other], Experiment(robot=robot, estimator="consistent"))


def test_a_saved_result_with_biases_of_segments_predicts_other_logs(tmp_path) -> None:
    write_results(by_segments(), tmp_path / "out")
    _, other = wrist_log(rate=RATE, seed=5, name="other")
    predicted, _ = validate_result(tmp_path / "out", [other])
    # Noise alone: the mean of the biases serves a log that was not there.
    assert predicted[0].residual_percent < 5.0


def test_a_wrench_in_axes_of_the_base_is_reported() -> None:
    robot, log = wrist_log(rate=RATE)
    R = wrist_samples(Setup(), rate=RATE)[1].R
    turned = np.concatenate(
        [np.einsum("nij,nj->ni", R, part) for part in np.split(log.tau, 2, axis=1)], axis=1
    )
    assert "the base frame" in told(identified(robot, replace(log, tau=turned)), "wrench-frame")


def test_a_wrench_in_axes_of_the_flange_is_reported() -> None:
    robot, log = wrist_log(rate=RATE)
    turned = np.concatenate([part @ SENSOR.frame.R.T for part in np.split(log.tau, 2, axis=1)], axis=1)
    assert "body 'link_7'" in told(identified(robot, replace(log, tau=turned)), "wrench-frame")


DRIFT = np.zeros((4, 6))
DRIFT[2, 1], DRIFT[3, 5] = 1.0, 0.05


def test_drift_between_segments_is_told_where_one_bias_is_meant() -> None:
    found = identified(*wrist_log(rate=RATE, segments=RUNS, drift=DRIFT))
    assert "segment" in told(found, "bias-drift")
    same = identified(*wrist_log(rate=RATE, segments=RUNS))
    assert "bias-drift" not in codes(same)


def test_every_segment_may_have_its_own_bias() -> None:
    found = identified(
        *wrist_log(rate=RATE, segments=RUNS, drift=DRIFT, asked=replace(SENSOR, bias="segment"))
    )
    assert sum(one.name.startswith("Off_") for one in found.parameters) == 24
    for k in range(4):
        for c, name in enumerate(COMPONENTS):
            one = found[f"Off_{name}_wrist_{k + 1}"]
            # Six deviations.
            assert abs(one.value - BIAS[c] - DRIFT[k, c]) < 6 * one.sigma
    written = json.loads(found.files["compensation.json"])
    # The mean of four.
    np.testing.assert_allclose(
        written["bias"],
        [np.mean([found[f"Off_{name}_wrist_{k}"].value for k in (1, 2, 3, 4)]) for name in COMPONENTS],
        rtol=1e-12,
    )


def test_a_log_not_seen_gets_the_mean_bias_of_the_segments() -> None:
    # Noise alone, as for one constant bias.
    assert by_segments().validation[0].residual_percent < 5.0


def test_without_bias_there_are_no_columns_for_it() -> None:
    setup = Setup(bias=0.0 * BIAS)
    found = identified(*wrist_log(setup, rate=RATE, asked=replace(SENSOR, bias="none")))
    assert [one.name for one in found.parameters] == list(tool_values())


def test_little_turning_says_what_it_cannot_tell() -> None:
    found = identified(*wrist_log(rate=RATE, motion=wrist_motion(size=0.004)))
    text = told(found, "rotation-little")
    assert "weight and bias are separated by rotation only" in text
    assert "M_tool" in text
    assert "gravity moment" in text
    assert "XX_tool" in text
    assert "rad/s^2" in text


def test_standing_still_leaves_everything_to_the_bias() -> None:
    """One pose: nothing tells the weight from the bias, and the result says so."""
    robot, log = wrist_log(rate=RATE, motion=wrist_motion(size=0.0), encoder=0.0)
    found = identified(robot, log, estimator="wls")
    lost = {name.removesuffix("_R") for name in found.not_identifiable}
    assert {"M_tool", "MX_tool", "MZ_tool", "ZZ_tool"} <= lost


def test_static_poses_tell_mass_and_centre_and_leave_inertia_to_a_ball() -> None:
    """A slow log: with a generic prior a consistent body still exists."""
    slow = wrist_motion(seconds=400.0, size=0.05)
    # As sure as 2000 samples with all of the noise.
    found = identified(
        *wrist_log(Setup(noise=0.4 * NOISE), rate=1.0, motion=slow, seconds=400.0, encoder=0.0)
    )
    assert abs(found["M_tool"].value / 1.3 - 1.0) < 0.005
    assert "rotation-little" in codes(found)
    entries = {one["name"]: one["value"] for one in found.standard}
    assert entries["XX_tool"] > 0


def test_readings_at_the_end_of_the_range_are_told_and_left_out() -> None:
    robot, log = wrist_log(rate=RATE, asked=replace(SENSOR, limits=(18.0, 1.2)))
    clipped = replace(log, tau=np.clip(log.tau, -np.repeat([18.0, 1.2], 3), np.repeat([18.0, 1.2], 3)))
    found = identified(robot, clipped)
    assert "fz" in told(found, "sensor-saturated")
    # Left out, they do no harm: as many deviations as without.
    assert abs(found["M_tool"].value - 1.3) < 6 * found["M_tool"].sigma


@pytest.mark.parametrize("scale", [1.06, 1 / 9.81])
def test_an_accelerometer_in_another_unit_is_reported(scale: float) -> None:
    t, truth, _ = wrist_samples(Setup(), rate=RATE)
    robot = with_force_sensor(load_robot("panda"), ForceSensor(imu=identity_frame()))
    signals = np.hstack([truth.omega, scale * truth.specific])
    noisy = truth.wrench + NOISE * np.random.default_rng(0).standard_normal((len(t), 6))
    assert "imu-gravity" in codes(identified(robot, log_from_arrays(robot, t, signals, noisy)))


def test_imu_columns_have_their_plain_names(tmp_path) -> None:
    t, truth, _ = wrist_samples(Setup(), rate=RATE)
    noisy = truth.wrench + NOISE * np.random.default_rng(0).standard_normal((len(t), 6))
    names = ("wx", "wy", "wz", "ax", "ay", "az")
    signals = np.hstack([truth.omega, truth.specific / 9.81]).T
    write_csv(
        tmp_path / "imu.csv", {"t": t} | dict(zip((*names, *COMPONENTS), (*signals, *noisy.T), strict=True))
    )
    (tmp_path / "imu.yaml").write_text(
        "robot: panda\nlogs: [imu.csv]\nforce_sensor: {imu: true}\n"
        "columns: {ax: {scale: 9.81}, ay: {scale: 9.81}, az: {scale: 9.81}}\n",
        encoding="utf-8",
    )
    found = run_experiment(read_experiment(tmp_path / "imu.yaml"))
    assert abs(found["M_tool"].value - 1.3) < 6 * found["M_tool"].sigma
    assert json.loads(found.files["compensation.json"])["chain"] is None
    assert "imu-gravity" not in codes(found)


def check_floor(left: np.ndarray) -> None:
    """What compensation leaves of a log without contact is the noise of the sensor and nothing else."""
    n = len(left)
    # Errors of the parameters are far below the noise: 2 % of its rms, and its mean over n samples.
    assert np.all(np.abs(np.std(left, axis=0) / NOISE - 1.0) < 5.0 / np.sqrt(2 * n) + 0.02)
    assert np.all(np.abs(left.mean(axis=0)) < 8.0 * NOISE / np.sqrt(n))


def test_compensation_leaves_noise_alone_of_joints_and_of_an_imu() -> None:
    """Each way to give the motion, over whole logs that were not fitted."""
    _, other = wrist_log(rate=RATE, seed=21)
    t, truth, _ = wrist_samples(Setup(), rate=RATE)
    motion = wrist_motion()
    _, log = wrist_log(rate=RATE)
    by_joints = json.loads(plain().files["compensation.json"])
    rates = [x(t).tolist() for x in (motion.q, motion.dq, motion.ddq)]
    states = zip(other.tau.tolist(), *rates, strict=True)
    check_floor(np.array([compensate_joints(by_joints, *state) for state in states]))
    place = Frame(rpy_matrix((0.0, 0.0, np.pi / 2)), np.array([0.02, 0.0, -0.015]))
    carried = np.cross(truth.alpha, place.p) + np.cross(truth.omega, np.cross(truth.omega, place.p))
    omega, alpha, specific = (x @ place.R for x in (truth.omega, truth.alpha, truth.specific + carried))
    inertial = with_force_sensor(load_robot("panda"), ForceSensor(imu=place))
    made = log_from_arrays(inertial, t, np.column_stack([omega, specific]), log.tau, name="imu")
    by_imu = json.loads(identified(inertial, made).files["compensation.json"])
    felt = zip(other.tau.tolist(), omega.tolist(), alpha.tolist(), specific.tolist(), strict=True)
    check_floor(np.array([compensate_imu(by_imu, *state) for state in felt]))


@pytest.mark.parametrize("degrees", [1.0, 6.0, 150.0])
def test_a_sensor_that_is_turned_against_its_description_is_reported(degrees: float) -> None:
    assert "mounting-off" not in codes(plain())
    _, log = wrist_log(rate=RATE)
    off = rpy_matrix((0.0, 0.0, -np.deg2rad(degrees)))
    asked = replace(SENSOR, frame=Frame(SENSOR.frame.R @ off, SENSOR.frame.p))
    found = identified(with_force_sensor(load_robot("panda"), asked), log)
    (size,) = re.findall(r"rotated by ([0-9.]+) degrees", told(found, "mounting-off"))
    assert float(size) == pytest.approx(degrees, abs=1.0)  # forces alone, the swing of the tool left out


def test_an_imu_that_is_turned_against_the_sensor_is_reported() -> None:
    t, truth, _ = wrist_samples(Setup(), rate=RATE)
    robot = with_force_sensor(load_robot("panda"), ForceSensor(imu=identity_frame()))
    Q = rpy_matrix((0.0, 0.0, 0.5))
    q = np.column_stack([truth.omega @ Q, truth.specific @ Q])
    log = log_from_arrays(robot, t, q, wrist_log(rate=RATE)[1].tau)
    text = told(identified(robot, log), "mounting-off")
    assert "relative to its IMU" in text


def test_moments_in_another_unit_than_forces_are_reported() -> None:
    robot, log = wrist_log(rate=RATE)
    found = identified(robot, replace(log, tau=log.tau * np.repeat([1.0, 1000.0], 3)), estimator="wls")
    assert "different units" in told(found, "moment-unit")
    assert "moment-unit" not in codes(plain())


def test_joints_of_a_log_are_not_taken_for_an_imu(folder) -> None:
    """Six columns q_1.. q_6 are not six signals of an inertial unit."""
    with pytest.raises(InputError, match="no column for the IMU: wx, wy, wz, ax, ay, az"):
        identify("panda", folder / "wrist.csv", force_sensor=ForceSensor(imu=identity_frame()))


def test_a_payload_that_the_sensor_does_not_feel_is_refused(folder) -> None:
    box = Payload("box", "link_7", identity_frame())
    with pytest.raises(InputError, match="measures the load on 'tool'"):
        identify("panda", folder / "wrist.csv", force_sensor=SENSOR, payloads={"box": box})


def test_loads_on_the_tool_are_told_apart_from_it() -> None:
    """A log without and one with a box on the gripper: two bodies from one sensor."""
    box = 0.7 * TOOL
    frame = Frame(np.eye(3), np.array([0.0, 0.0, 0.15]))
    arm = replace(
        with_force_sensor(load_robot("panda"), SENSOR), payloads={"box": Payload("box", "tool", frame)}
    )
    from dynid.mechanism.inertia import in_parent_frame

    together = TOOL + in_parent_frame(box, frame.R, frame.p)
    _, free = wrist_log(rate=RATE)
    _, loaded = wrist_log(Setup(tool=together), rate=RATE, seed=4, name="loaded")
    found = identified(arm, free, replace(loaded, payloads=("box",)))
    for name, true in (tool_values() | tool_values(box, "box")).items():
        # Six deviations.
        assert abs(found[name].value - true) < 6 * found[name].sigma
    parameters = json.loads(found.files["compensation.json"])
    assert parameters["payloads"]["box"]["mass"] == found["M_box"].value
    motion, t = wrist_motion(), loaded.t
    states = zip(
        loaded.tau.tolist(), *(x(t).tolist() for x in (motion.q, motion.dq, motion.ddq)), strict=True
    )
    left = np.array([compensate_joints(parameters, *state, payloads=["box"]) for state in states])
    check_floor(left)


def test_a_measured_pose_moves_the_sensor_as_joints_do(tmp_path) -> None:
    """Pose columns instead of an arm: a free joint in the robot file."""
    from tests.oracle import pin, pinocchio_model

    setup = Setup(sensor=replace(SENSOR, frame=identity_frame()))
    t, truth, q = wrist_samples(setup, rate=RATE)
    arm = load_robot("panda")
    model, where = pinocchio_model(arm)
    data = model.createData()
    rows = []
    for row in q:
        pin.forwardKinematics(model, data, row)
        at = data.oMi[where["link_7"][0]] * where["link_7"][1]
        x, y, z, w = pin.Quaternion(at.rotation).coeffs()
        rows.append([*at.translation, w, x, y, z])
    noisy = truth.wrench + BIAS + NOISE * np.random.default_rng(3).standard_normal((len(t), 6))
    names = ("x", "y", "z", "qw", "qx", "qy", "qz", *COMPONENTS)
    columns = np.hstack([np.array(rows), noisy]).T
    write_csv(tmp_path / "pose.csv", {"t": t} | dict(zip(names, columns, strict=True)))
    (tmp_path / "free.yaml").write_text(
        "name: handheld\njoints: [{name: pose, kind: free, parent: base, child: flange}]\nmeasured: [pose]\n",
        encoding="utf-8",
    )
    (tmp_path / "job.yaml").write_text(
        "robot: free.yaml\nlogs: [pose.csv]\nforce_sensor: {body: flange}\n", encoding="utf-8"
    )
    found = run_experiment(read_experiment(tmp_path / "job.yaml"))
    for name, true in tool_values().items():
        # Six deviations.
        assert abs(found[name].value - true) < 6 * found[name].sigma


def test_a_sensor_on_a_closed_robot() -> None:
    """The platform of a Stewart robot: its pose follows from six legs, the tool hangs below."""
    from dynid.excitation.random_motion import random_motion
    from dynid.projection.sensor import SensorColumns

    arm = load_robot("stewart")
    robot = with_force_sensor(arm, ForceSensor(body="platform"))
    motion = random_motion(arm, 3, draws=1)
    t = np.arange(0.0, 10.0, 0.02)
    states = motion.q(t)
    blank = log_from_arrays(robot, t, states, np.tile(np.sin(t)[:, None], 6))
    problem = prepare(robot, [blank], Experiment(robot=robot))
    source = problem.sources[0]
    columns = SensorColumns(robot, problem.parameters, range(6))
    measured = np.zeros((len(t), 6))
    for start, stop in source.pieces():
        moved = source.frames.along(start, source.motion.states(start, stop))
        measured[start:stop] = columns.wrench(moved, np.zeros(0)) @ TOOL
    found = identified(robot, replace(blank, tau=measured), estimator="wls")
    for name, true in tool_values().items():
        if name in {one.name for one in found.parameters}:
            # The same motion on both sides: what differs is the row filter, at the pieces' ends.
            assert found[name].value == pytest.approx(true, rel=1e-6, abs=1e-8)
    assert {"M_tool", "MX_tool", "MZ_tool", "XX_tool"} <= {one.name for one in found.parameters}


def test_the_example_finds_what_it_put_in(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    import sensor_panda

    sensor_panda.main()
    shown = capsys.readouterr().out
    assert "M_gripper" in shown
    felt = json.loads(shown.splitlines()[-1].removeprefix("felt").strip().replace("'", '"'))
    # 200 readings with noise of 0.5 N and 0.02 N m, differentiated by hand.
    assert np.all(np.abs(np.array(felt) - sensor_panda.PUSH) < np.repeat([0.3, 0.02], 3))


def test_the_words_for_a_load_have_the_intervals_of_its_centre(result) -> None:
    """Half of the 95 % interval, against draws from the covariance of the result."""
    names = [one.name for one in result.parameters]
    draws = np.random.default_rng(0).multivariate_normal(
        [one.value for one in result.parameters], result.covariance, size=20_000
    )
    mass, moments = names.index("M_gripper"), [names.index(f"{s}_gripper") for s in ("MX", "MY", "MZ")]
    spread = 1e3 * np.std(draws[:, moments] / draws[:, [mass]], axis=0)
    told = result.choices["load gripper"].split("+- (")[1].split(")")[0]
    dof = min(result.parameters[k].dof for k in (mass, *moments))
    # Printed with two decimals, in mm; draws give the spread to some 0.5 %.
    np.testing.assert_allclose(
        [float(x) for x in told.split(",")], student_t(dof, 0.95) * spread, rtol=0.02, atol=0.007
    )
