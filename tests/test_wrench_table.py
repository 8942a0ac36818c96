"""Wrench tables as files: columns, units, names, what can be derived, and what must be refused or told."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cases.wrench_table.reader import read_wrench_table
from dynid.cli import main
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import read
from dynid.excitation.random_motion import random_motion
from dynid.kinematics.tree import times_pure
from dynid.mechanism.frame import Frame, rotation_of, rpy_matrix
from dynid.mechanism.inertia import SYMBOLS, is_physical
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Body, Mechanism
from dynid.motion.differentiate import derivatives
from dynid.motion.settings import WrenchSettings
from dynid.motion.units import last_figures
from dynid.pipeline import identify, validate_result
from dynid.report.json_file import read_result
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.wrench_table import (
    UniformAcceleration,
    table_columns,
    wrench_table,
    write_wrench_table,
)
from tests.built_in import codes, truth_of

ROBOT = load_robot("serial6")
TRUTH = read_demo(demo_file("serial6"), ROBOT).truth
MOTION = UniformAcceleration(np.zeros(6), np.deg2rad([30.0, 30.0, 10.0, -40.0, 20.0, 50.0]))


def table(n=6, digits=7, **options):
    return wrench_table(ROBOT, TRUTH, MOTION, np.linspace(0.3, 1.5, n), digits, **options)


def columns_of(log):
    return {name: list(values) for name, values in table_columns(log).items()}


def write(path, columns, digits=7):
    def shown(x):
        return x if isinstance(x, str) else f"{x:.{digits}g}"

    rows = [",".join(columns), *(",".join(map(shown, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def turned(log, what, inverse=False):
    """Vectors of a table given in body axes instead of world axes, or the other way round."""
    rows = log.rows
    R = rotation_of(rows.signals["quaternion"])
    axes = "nbij,nbj->nbi" if inverse else "nbji,nbj->nbi"
    changed = {name: np.einsum(axes, R, rows.signals[name]) for name in what}
    return replace(log, table=replace(rows, signals={**rows.signals, **changed}))


def changed(log, **signals):
    return replace(log, table=replace(log.rows, signals={**log.rows.signals, **signals}))


def fit(log, **options):
    return identify(ROBOT, log, model="wrench", wrench={"parameters": "principal", **options})


def worst(found):
    return max(abs(one.value / TRUTH[one.name] - 1.0) for one in found.parameters)


# Reading


def test_a_written_table_is_read_back(tmp_path):
    log = table()
    found = read_wrench_table(write_wrench_table(log, tmp_path / "a.csv", 7), ROBOT, WrenchSettings())
    for quantity, values in log.rows.signals.items():
        # Quaternions are brought to length one, which seven figures miss by 1e-7.
        error = np.abs(found.rows.signals[quantity] - values).max()
        assert error <= (3e-7 if quantity == "quaternion" else 0.0)
    assert found.rows.figures_of == 7
    assert found.choices["table"] == "6 instants, 36 rows, 7 figures"


@pytest.mark.parametrize("digits", [4, 6, 7, 9, 12])
def test_printed_figures_are_counted(digits):
    rng = np.random.default_rng(digits)
    x = rng.normal(size=60) * 10.0 ** rng.integers(-4, 5, 60)
    printed = np.array([float(f"{one:.{digits}g}") for one in x])
    errors = np.abs(printed - x) / last_figures(printed)
    # Half a unit of the last figure is the most that rounding does, and it does nearly that somewhere.
    assert errors.max() <= 0.5 + 1e-3
    assert errors.max() > 0.3


def test_decimals_are_counted_where_they_are_the_format():
    x = np.array([123.4567, 0.0012, -4.5, 0.0])
    assert np.all(last_figures(x) == 1e-4)


def test_columns_units_and_names_are_mapped(tmp_path):
    columns = columns_of(table())
    columns["part"] = [f"PART_{name[1]}" for name in columns.pop("body")]
    columns["FX"] = [x / 1e3 for x in columns.pop("fx")]
    columns["WY"] = [np.rad2deg(x) for x in columns.pop("wy")]
    file = write(tmp_path / "adams.csv", columns, digits=12)
    found = identify(
        ROBOT,
        file,
        model="wrench",
        wrench={"parameters": "principal", "names": {f"PART_{i}": f"B{i}" for i in range(1, 7)}},
        columns={
            "body": _map("part"),
            "fx": _map("FX", "kN"),
            "wy": _map("WY", "deg/s"),
        },
    )
    assert worst(found) < 1e-3


def _map(name, unit=None):
    from dynid.experiment.experiment import ColumnMap

    return ColumnMap(name, unit)


def test_bodies_may_be_numbered_and_some_programs_print_the_ground(tmp_path):
    columns = columns_of(table())
    columns["body"] = [str(int(name[1])) for name in columns["body"]]
    for name, values in columns.items():
        values.append("0" if name == "body" else values[0] if name == "t" else 0.0)
    assert worst(fit(write(tmp_path / "a.csv", columns))) < 1e-3


def test_experiment_file_and_command_line(tmp_path):
    write_wrench_table(table(5), tmp_path / "five.csv", 7)
    write_wrench_table(table(8), tmp_path / "eight.csv", 7)
    text = """
schema: dynid.experiment/1
robot: serial6
model: wrench
logs: [five.csv]
validate: [eight.csv]
wrench: {parameters: principal, bodies: [B2, B5], axes: {wrench: world}, acceleration: kinematic}
"""
    (tmp_path / "job.yaml").write_text(text)
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["identify", str(tmp_path / "job.yaml"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    document = json.loads((out / "result.json").read_text())
    assert [p["name"] for p in document["parameters"]] == [
        f"{symbol}_{body}" for body in ("B2", "B5") for symbol in ("XX", "YY", "ZZ", "M")
    ]
    assert document["model"] == "wrench"
    # Seven figures: the balance closes to 1e-6 in a table that was not used.
    assert document["validation"][0]["residual_percent"] < 1e-3
    assert "mass by direction" in document["choices"]
    shown = (out / "report.html").read_text().partition('id="downloads"')[0]  # behind it: files to save
    assert shown.count("B2 along x") == 1
    again = CliRunner().invoke(main, ["validate", str(out), str(tmp_path / "eight.csv")])
    assert again.exit_code == 0, again.output
    later = json.loads((out / "validation.json").read_text())
    assert later["validation"][0]["residual_percent"] == pytest.approx(
        document["validation"][0]["residual_percent"]
    )


def test_a_result_predicts_tables_from_python(tmp_path):
    found = fit(table(5))
    (one,), _ = validate_result(found, [table(9)], ROBOT)
    assert one.residual_percent < 1e-3
    assert read_back(found, tmp_path).parameters == found.parameters


def read_back(found, tmp_path):
    from dynid.report.json_file import json_text, result_document

    (tmp_path / "result.json").write_text(json_text(result_document(found)))
    return read_result(tmp_path)


def test_a_prediction_of_a_table_is_judged_by_force_and_moment():
    """A component that is zero but for rounding says nothing of a prediction."""
    found = identify(ROBOT, table(8), validate=[table(5)], model="wrench", wrench={"parameters": "principal"})
    (one,) = found.validation
    assert [group.name for group in one.groups] == [group.name for group in found.fit.groups]
    assert max(group.residual_percent for group in one.groups) < 0.1  # seven figures of larger wrenches


@pytest.mark.parametrize("estimator", ["ols", "tls", "consistent"])
def test_estimators_take_tables(estimator):
    options = {"parameters": "principal"}
    found = identify(ROBOT, table(8), model="wrench", estimator=estimator, wrench=options)
    masses = [abs(one.value / TRUTH[one.name] - 1.0) for one in found.parameters if one.name.startswith("M_")]
    # Seven figures, whatever the weights do to small inertias.
    assert max(masses) < 1e-4


@pytest.mark.parametrize(
    ("parameters", "hidden"),
    [("principal", {"YY_B1", "ZZ_B1"}), ("full", {"YY_B1", "YZ_B1", "ZZ_B1", "MX_B1"})],
)
def test_real_bodies_need_no_prior_where_the_table_tells_their_masses(parameters, hidden):
    """A body's own weight says how large it may be: what a vertical axis hides is a generic body's."""
    options = {"parameters": parameters}
    found = identify(ROBOT, table(8), model="wrench", estimator="consistent", wrench=options)
    assert set(found.not_identifiable) == hidden
    assert {entry["name"] for entry in found.standard if entry["from"] == "prior"} == hidden
    (told,) = (one.text for one in found.warnings if one.code == "generic-prior")
    assert "no prior for B1:" in told
    values = {entry["name"]: entry["value"] for entry in found.standard}
    # Seven figures leave the masses; the hidden inertias are those of some body between the joints.
    assert values["M_B1"] == pytest.approx(TRUTH["M_B1"], rel=1e-5)
    assert TRUTH["YY_B1"] / 4.0 < values["YY_B1"] < TRUTH["YY_B1"] * 4.0
    for body in ROBOT.bodies:
        chi = np.array([values.get(f"{symbol}_{body}", 0.0) for symbol in SYMBOLS])
        assert is_physical(chi, 1e-6)  # the solver's tolerance


def about(log, at):
    """The same wrenches with moments about another point than the joint's origin."""
    rows = log.rows
    R, p = rotation_of(rows.signals["quaternion"]), rows.signals["position"]
    joints = p + np.einsum("nbij,bj->nbi", R, [joint.body.inverse().p for joint in ROBOT.joints])
    point = {"body": p, "world": np.zeros_like(p)}[at]
    return changed(log, moment=rows.signals["moment"] + np.cross(joints - point, rows.signals["force"]))


@pytest.mark.parametrize("at", ["body", "world"])
@pytest.mark.parametrize("parameters", ["principal", "full"])
@pytest.mark.parametrize("digits", [4, 7])
def test_moments_about_another_point_are_recognised(at, parameters, digits, tmp_path):
    """At the centroid (here the body's origin) or about the world's origin instead of at the hinge."""
    moved = about(table(9, digits=None, positions=True), at)
    log = write_wrench_table(moved, tmp_path / "moved.csv", digits)
    with pytest.raises(InputError, match="moments about") as error:
        fit(log, parameters=parameters)
    assert f"at: {at}" in error.value.remedy
    found = fit(log, parameters=parameters, at=at)
    masses = [abs(one.value / TRUTH[one.name] - 1.0) for one in found.parameters if one.name.startswith("M_")]
    assert max(masses) < 10.0 ** (2 - digits)  # forces of outer bodies are differences of printed ones
    assert "no-balance" not in codes(found)


def test_moments_about_the_centre_of_mass_of_the_robot_file():
    """Bodies whose frames are elsewhere: the description knows where they weigh."""
    arm = load_robot("puma560")
    truth = truth_of("puma560")
    bodies = {
        name: replace(body, prior={symbol: truth[f"{symbol}_{name}"] for symbol in SYMBOLS})
        for name, body in arm.bodies.items()
    }
    arm = replace(arm, bodies=bodies)
    log = wrench_table(arm, truth, random_motion(arm, 2), np.linspace(0.5, 9.0, 12), None, positions=True)
    rows = log.rows
    centres = np.array(
        [[truth[f"{s}_{b}"] / truth[f"M_{b}"] for s in ("MX", "MY", "MZ")] for b in arm.bodies]
    )
    joints = np.array([joint.body.inverse().p for joint in arm.joints])
    lever = np.einsum("nbij,bj->nbi", rotation_of(rows.signals["quaternion"]), joints - centres)
    log = changed(log, moment=rows.signals["moment"] + np.cross(lever, rows.signals["force"]))
    with pytest.raises(InputError) as error:
        identify(arm, log, model="wrench")
    assert "at: com" in error.value.remedy
    found = identify(arm, log, model="wrench", wrench={"at": "com"})
    for one in found.parameters:
        # Exact data: rounding, and small entries of light bodies beside large wrenches.
        assert one.value == pytest.approx(truth[one.name], rel=1e-6, abs=1e-7)


def test_a_point_that_is_not_known_is_said():
    with pytest.raises(InputError, match="not its position"):
        fit(table(), parameters="full", at="com")
    with pytest.raises(InputError, match="positions"):
        fit(table(), at="world")
    with pytest.raises(InputError, match="joint, body, com, world"):
        fit(table(), at="hinge")


def test_what_is_known_to_be_small_is_no_weak_parameter():
    """Cylinders have neither products of inertia nor a centre of mass off the origin; the table says so."""
    motion = random_motion(ROBOT, 3, frequency=0.05)
    log = wrench_table(ROBOT, TRUTH, motion, np.linspace(0.0, 19.0, 9), 7)
    found = identify(ROBOT, log, model="wrench")
    assert sum(one.sigma_rel_percent is None or one.sigma_rel_percent > 100 for one in found.parameters) > 5
    assert codes(found) == ["not-excited"]
    short = wrench_table(ROBOT, TRUTH, motion, np.linspace(0.0, 19.0, 9), 3)  # three figures
    assert "weak-parameters" in codes(identify(ROBOT, short, model="wrench"))


def test_simulated_attitudes_do_not_change_their_sign(tmp_path):
    log = wrench_table(ROBOT, TRUTH, random_motion(ROBOT, 3, frequency=0.05), np.linspace(0.0, 19.0, 9), 7)
    path = write_wrench_table(log, tmp_path / "t.csv", 7)
    assert read_wrench_table(path, ROBOT, WrenchSettings()).notices == ()


def test_robust_estimates_forgive_a_misprint():
    rng = np.random.default_rng(11)
    log = table(40, digits=None)
    force = log.rows.signals["force"] + 5.0 * rng.normal(size=log.rows.signals["force"].shape)
    moment = log.rows.signals["moment"] + rng.normal(size=force.shape)
    force[7, 4] *= 10.0  # B5 at one instant: its balance and that of B4
    log = changed(log, force=force, moment=moment)
    options = {"parameters": "principal", "bodies": ["B4", "B5"]}
    by = {
        name: identify(ROBOT, log, model="wrench", estimator=own, wrench=options)
        for name, own in (("robust", {"name": "robust", "function": "huber"}), ("wls", "wls"))
    }
    errors = {name: abs(one["M_B5"].value / TRUTH["M_B5"] - 1.0) for name, one in by.items()}
    # 5 N on some thousand newtons, forty times, is 0.03 %; huber limits a misprint, it does not drop it.
    assert errors["robust"] < 5e-3
    assert errors["wls"] > 0.1


# What the table does not tell is derived, and said


def dense(**options):
    return wrench_table(ROBOT, TRUTH, MOTION, np.linspace(0.3, 1.5, 61), None, **options)


def without(log, *quantities, **joints):
    rows = log.rows
    kept = {name: x for name, x in rows.signals.items() if name not in quantities}
    figures = {name: x for name, x in rows.figures.items() if name not in quantities}
    added = {name: np.zeros_like(x) for name, x in joints.items()}
    less = replace(rows, signals=kept, figures=figures, joints=joints, joint_figures=added)
    return replace(log, table=less)


def test_rates_and_accelerations_are_derived_from_poses():
    log = without(dense(positions=True), "omega", "alpha", "acceleration")
    found = fit(log)
    # Seven points at 20 ms: errors of the sixth order in a smooth motion.
    assert worst(found) < 1e-4
    assert found.choices["angular velocity"].startswith("differentiated from quaternions")
    assert found.choices["acceleration of the origin"].startswith("differentiated from positions")


def test_angular_accelerations_are_derived_from_angular_velocities():
    found = fit(without(dense(), "alpha"))
    assert worst(found) < 1e-6
    assert found.choices["angular acceleration"].startswith("differentiated from angular velocities")


@pytest.mark.parametrize("rates", [("q",), ("q", "dq"), ("q", "dq", "ddq")])
def test_body_motion_follows_from_joint_angles(rates):
    log = dense()
    joints = {rate: getattr(MOTION, rate)(log.t).copy() for rate in rates}
    found = fit(without(log, "quaternion", "omega", "alpha", "acceleration", **joints))
    assert worst(found) < 1e-6
    assert "joint angles of the table" in found.choices["attitudes"]


def test_joint_angles_are_columns_of_a_file(tmp_path):
    log = dense()
    columns = columns_of(without(log, "omega", "alpha", "acceleration"))
    for rate in ("q", "dq", "ddq"):
        for i, values in enumerate(getattr(MOTION, rate)(log.t).T):
            columns[f"{rate}_{i + 1}"] = list(np.repeat(values, 6))
    found = fit(write(tmp_path / "a.csv", columns, digits=15))
    assert worst(found) < 1e-9
    columns["q_2"][8] += 0.1
    with pytest.raises(InputError, match=r"q_2 is .* in another row of the same instant"):
        fit(write(tmp_path / "b.csv", columns, digits=15))


def test_accelerations_of_the_centre_of_mass_are_those_of_the_origin_if_it_is_there():
    log = table()
    signals = dict(log.rows.signals)
    signals["centroid"] = signals.pop("acceleration")
    figures = dict(log.rows.figures)
    figures["centroid"] = figures.pop("acceleration")
    centred = replace(log, table=replace(log.rows, signals=signals, figures=figures))
    assert worst(fit(centred)) < 1e-3
    with pytest.raises(InputError, match="centre of mass of 'B1' are given, but not its position"):
        fit(centred, parameters="full")


def test_too_few_instants_to_derive_are_refused():
    log = without(wrench_table(ROBOT, TRUTH, MOTION, np.linspace(0.3, 1.5, 5)), "alpha")
    with pytest.raises(InputError, match="needs 7 time instants of one run; there are 5"):
        fit(log)


def test_coarse_instants_are_reported():
    motion = UniformAcceleration(np.zeros(6), np.full(6, 4.0))
    log = wrench_table(ROBOT, TRUTH, motion, np.linspace(0.0, 4.0, 9), None, positions=True)
    assert "derived-coarse" in codes(fit(without(log, "omega", "alpha", "acceleration")))


def test_derivatives_at_uneven_times_are_exact_for_polynomials():
    t = np.sort(np.random.default_rng(0).uniform(0, 1, 20))
    found = derivatives(t, np.column_stack([t**5, t**2]))
    # Degree six through seven points; rounding grows with the smallest step squared.
    assert np.allclose(found.second, np.column_stack([20 * t**3, np.full(20, 2.0)]), atol=1e-5)
    assert np.allclose(found.first, np.column_stack([5 * t**4, 2 * t]), atol=1e-8)


# Other mechanisms


def slider() -> Mechanism:
    """A carriage on a rail with a pendulum and a second pendulum on it: several children, a sliding joint."""
    place = Frame(rpy_matrix((0.3, 0.2, 0.1)), np.array([0.2, -0.1, 0.3]))
    x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    joints = (
        Joint("turn", JointKind.REVOLUTE, "base", "column", axes=(y,)),
        Joint("slide", JointKind.PRISMATIC, "column", "carriage", place, (x,), place),
        Joint("left", JointKind.REVOLUTE, "carriage", "pendulum", place, (y,)),
        Joint("right", JointKind.REVOLUTE, "carriage", "bob", place, (x,), place),
    )
    return Mechanism(
        name="slider",
        gravity=np.array([0.0, 0.0, -9.81]),
        joints=joints,
        bodies={joint.child: Body(joint.child) for joint in joints},
        actuators=(),
        measured=tuple(joint.name for joint in joints),
    )


def slider_truth():
    rng = np.random.default_rng(3)
    from dynid.mechanism.inertia import SYMBOLS
    from tests.random_mechanisms import random_inertias

    names = [f"{symbol}_{body}" for body in slider().bodies for symbol in SYMBOLS]
    return dict(zip(names, random_inertias(rng, 4).tolist(), strict=True))


def test_sliding_joints_need_positions():
    rng = np.random.default_rng(4)
    motion = UniformAcceleration(rng.normal(size=4), rng.normal(size=4))
    t = np.linspace(0.2, 2.0, 12)
    log = wrench_table(slider(), slider_truth(), motion, t)
    with pytest.raises(InputError, match="joint 'slide' is prismatic"):
        identify(slider(), log, model="wrench")
    found = identify(slider(), log, model="wrench", wrench={"bodies": ["carriage", "bob"]})
    assert {one.name.split("_")[1] for one in found.parameters} == {"carriage", "bob"}
    whole = wrench_table(slider(), slider_truth(), motion, t, positions=True)
    found = identify(slider(), whole, model="wrench")
    truth = slider_truth()
    plain = [one for one in found.parameters if not one.grouping]
    # Doubles through a condition of some hundreds.
    assert max(abs(one.value - truth[one.name]) for one in plain) < 1e-9


def test_bodies_in_loops_are_left_out_and_said(tmp_path):
    robot = load_robot("dualv")
    bodies = [name for name, body in robot.bodies.items() if body.parameters]
    rng = np.random.default_rng(0)
    columns = {"t": [], "body": []}
    numeric = ("qw", "qx", "qy", "qz", "wx", "wy", "wz", "dwx", "dwy", "dwz", "ax", "ay", "az")
    for name in (*numeric, "fx", "fy", "fz", "mx", "my", "mz"):
        columns[name] = []
    for t in range(4):
        for body in bodies:
            columns["t"].append(float(t))
            columns["body"].append(body)
            for name in columns:
                if name not in ("t", "body"):
                    columns[name].append(float(name == "qw") if name.startswith("q") else rng.normal())
    file = write(tmp_path / "a.csv", columns)
    with pytest.raises(InputError, match="body 'distal2' cannot be formed: loop 'wrist2' acts on it"):
        identify(robot, file, model="wrench", wrench={"bodies": ["distal2"]})


# Bad input


def test_sign_flips_of_quaternions_are_harmless_and_reported(tmp_path):
    columns = columns_of(table())
    for name in ("qw", "qx", "qy", "qz"):
        columns[name] = [-x if (i // 6) % 2 else x for i, x in enumerate(columns[name])]
    found = fit(write(tmp_path / "a.csv", columns))
    assert worst(found) < 1e-3
    (notice,) = [one for one in found.warnings if one.code == "quaternion-sign"]
    assert "30 quaternions change their sign" in notice.text


def test_quaternions_of_another_length_are_normalised_and_reported(tmp_path):
    columns = columns_of(table())
    for name in ("qw", "qx", "qy", "qz"):
        columns[name] = [1.01 * x for x in columns[name]]
    found = fit(write(tmp_path / "a.csv", columns))
    assert worst(found) < 1e-3
    (notice,) = [one for one in found.warnings if one.code == "quaternion-length"]
    assert "differs from 1 by up to 0.01" in notice.text


def test_quaternions_that_are_none_are_refused_with_their_row(tmp_path):
    columns = columns_of(table())
    for name in ("qw", "qx", "qy", "qz"):
        columns[name][7] *= 3.0
    with pytest.raises(InputError, match=r"quaternion of 'B2' .* has the norm 3 instead of 1") as error:
        fit(write(tmp_path / "a.csv", columns))
    assert error.value.place == "data row 8"
    assert "a.csv" in str(error.value)


def test_wrenches_in_body_axes_are_found_out_and_can_be_declared():
    log = turned(table(), ("force", "moment"))
    with pytest.raises(InputError, match="but they do with wrench in body axes") as error:
        fit(log)
    assert "axes: {wrench: body}" in error.value.remedy
    assert worst(fit(log, axes={"wrench": "body"})) < 1e-3


def test_rates_in_world_axes_are_found_out():
    log = turned(table(), ("omega", "alpha"), inverse=True)
    with pytest.raises(InputError, match="rates in world axes"):
        fit(log)
    assert worst(fit(log, axes={"rates": "world"})) < 1e-3


def test_gravity_subtracted_from_accelerations_is_found_out():
    log = table()
    proper = changed(log, acceleration=log.rows.signals["acceleration"] - ROBOT.gravity)
    with pytest.raises(InputError, match="gravity subtracted from accelerations") as error:
        fit(proper)
    assert "acceleration: proper" in error.value.remedy
    assert worst(fit(proper, acceleration="proper")) < 1e-3


def test_two_wrong_readings_at_once_are_found_out():
    log = turned(table(), ("force", "moment"))
    log = changed(log, acceleration=log.rows.signals["acceleration"] - ROBOT.gravity)
    with pytest.raises(InputError, match="wrench in body axes and gravity subtracted"):
        fit(log)


def test_reactions_instead_of_actions_are_found_out():
    log = table()
    log = changed(log, force=-log.rows.signals["force"], moment=-log.rows.signals["moment"])
    with pytest.raises(InputError, match="are negative") as error:
        fit(log)
    assert "exerted_by: body" in error.value.remedy
    assert worst(fit(log, exerted_by="body")) < 1e-3


def test_accelerations_that_do_not_fit_the_joints_are_reported():
    """Forces made with the wrong accelerations balance all the same: only the joints tell."""
    log = table()
    a = log.rows.signals["acceleration"].copy()
    a[:, 3] *= 1.2
    found = fit(changed(log, acceleration=a))
    (notice,) = [one for one in found.warnings if one.code == "acceleration-misfit"]
    assert "joint 'J4'" in notice.text
    assert "joint 'J5'" in notice.text
    assert "joint 'J2'" not in notice.text


def test_accelerations_that_do_not_fit_the_poses_are_reported():
    log = dense(positions=True)
    a = 1e3 * log.rows.signals["acceleration"]
    found = fit(changed(log, acceleration=a), bodies=["B6"])
    (notice,) = [one for one in found.warnings if one.code == "derivative-misfit"]
    assert "1e+03 times that, which looks like millimetres" in notice.text


def test_rates_in_degrees_are_reported():
    log = dense()
    omega = np.rad2deg(log.rows.signals["omega"])
    found = fit(changed(log, omega=omega))
    text = " ".join(one.text for one in found.warnings if one.code == "derivative-misfit")
    assert "looks like degrees" in text


def test_other_body_frames_than_the_robot_has_are_reported():
    log = table()
    q = log.rows.signals["quaternion"].copy()
    turn = np.array([[0.1, 0.0, 0.0]])  # B3 with axes 11 degrees about its own x from those of the file
    q[:, 2] += times_pure(q[:, 2], np.repeat(turn, len(q), axis=0))
    found = fit(changed(log, quaternion=q / np.linalg.norm(q, axis=2, keepdims=True)))
    (notice,) = [one for one in found.warnings if one.code == "attitude-misfit"]
    assert "joint 'J3'" in notice.text
    assert "11 degrees" in notice.text


def test_bodies_that_balance_in_no_reading_are_reported():
    log = table()
    force = log.rows.signals["force"][..., [1, 0, 2]]
    found = fit(changed(log, force=force))
    assert "no-balance" in codes(found)


def test_one_instant_is_too_few(tmp_path):
    with pytest.raises(InputError, match="1 instant: too few") as error:
        fit(write_wrench_table(table(1), tmp_path / "a.csv", 7))
    assert "three instants or more" in error.value.remedy


def test_two_instants_do_for_four_parameters_a_body():
    assert len(fit(table(2)).parameters) == 22


def test_fewer_rows_than_parameters_are_refused():
    log = table(2)
    half = replace(log.rows, present=log.rows.present & (np.arange(6) != 5) | (np.arange(2) == 0)[:, None])
    with pytest.raises(InputError, match="rows cannot determine 10 base parameters") as error:
        fit(replace(log, table=half), parameters="full", bodies=["B6"])
    assert "instants" in error.value.remedy


def test_unknown_bodies_are_refused_with_the_nearest_name(tmp_path):
    columns = columns_of(table())
    columns["body"][9] = "Body4"
    with pytest.raises(InputError, match=r"unknown body 'Body4'; valid names are B1, B2") as error:
        fit(write(tmp_path / "a.csv", columns))
    assert error.value.place == "data row 10, column 'body'"
    with pytest.raises(InputError, match="no body 'B7'"):
        fit(write_wrench_table(table(), tmp_path / "b.csv", 7), bodies=["B7"])


def test_missing_rows_of_children_are_told_or_refused(tmp_path):
    columns = columns_of(table())
    keep = [i for i, name in enumerate(columns["body"]) if name != "B4"]
    file = write(tmp_path / "a.csv", {name: [x[i] for i in keep] for name, x in columns.items()})
    found = fit(file)
    (notice,) = [one for one in found.warnings if one.code == "body-left-out"]
    assert "'B3' (no row of its child 'B4' in a), 'B4' (no row in a)" in notice.text
    assert {one.name.split("_")[1] for one in found.parameters} == {"B1", "B2", "B5", "B6"}
    with pytest.raises(InputError, match="equations of body 'B3' cannot be formed: no row of its child 'B4'"):
        fit(file, bodies=["B3"])


def test_instants_without_a_child_are_left_out(tmp_path):
    columns = columns_of(table())
    keep = [i for i in range(len(columns["t"])) if i != 15]
    found = fit(write(tmp_path / "a.csv", {name: [x[i] for i in keep] for name, x in columns.items()}))
    rows = {group.name: group.n_rows for group in found.fit.groups}
    assert rows["B3 force"] == rows["B4 force"] == 15
    assert rows["B2 force"] == 18
    assert worst(found) < 1e-3


def test_rows_that_occur_twice_are_refused(tmp_path):
    columns = columns_of(table())
    for values in columns.values():
        values.append(values[3])
    with pytest.raises(InputError, match=r"two rows for body number 4 at t = 0\.3 s") as error:
        fit(write(tmp_path / "a.csv", columns))
    assert error.value.place == "data rows 4 and 37"


@pytest.mark.parametrize(
    ("drop", "text"),
    [
        ("t", "no time column 't'"),
        ("body", "no body column 'body'"),
        ("my", "the moment at the inner joint needs mx, my, mz; my is missing"),
        ("qx", "the attitude needs qw, qx, qy, qz; qx is missing"),
    ],
)
def test_missing_columns_are_refused(tmp_path, drop, text):
    columns = columns_of(table())
    del columns[drop]
    with pytest.raises(InputError, match=text):
        fit(write(tmp_path / "a.csv", columns))


def test_missing_motion_is_refused_with_all_ways_out():
    with pytest.raises(InputError, match="has no acceleration of the origin") as error:
        fit(without(table(), "acceleration"))
    assert "joint angles" in error.value.remedy


def test_numbers_that_are_none_are_refused(tmp_path):
    columns = columns_of(table())
    columns["fz"][4] = float("nan")
    with pytest.raises(InputError, match="fz is nan") as error:
        fit(write(tmp_path / "a.csv", columns))
    assert error.value.place == "data row 5, column 'fz'"


@pytest.mark.parametrize(
    "options",
    [
        {"filter": {"cutoff": 5.0}},
        {"cross_validate": 3},
        {"gate": "prior"},
        {"refine": True},
        {"gains": "all"},
        {"estimator": "gtls"},
        {"efforts": (1,)},
        {"uncertainty": "hac"},
    ],
)
def test_what_needs_time_is_refused(options):
    with pytest.raises(InputError, match="has no meaning for a table of instants"):
        identify(ROBOT, table(), model="wrench", **options)


def test_recordings_of_joints_are_no_tables():
    from dynid.simulation.prescribed import simulate_log

    log = simulate_log(ROBOT, TRUTH, MOTION, rate=50.0, duration=1.0)
    with pytest.raises(InputError, match="is a recording of joints"):
        identify(ROBOT, log, model="wrench")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"parameter": "full"}, "wrench has no 'parameter'; did you mean 'parameters'"),
        ({"parameters": "some"}, "wrench.parameters: 'some' is not known"),
        (
            {"axes": {"force": "body"}},
            "wrench.axes.force: axes has no 'force'; valid names are wrench, rates",
        ),
        ({"axes": {"wrench": "tool"}}, "wrench.axes.wrench: 'tool' is not known"),
        ({"acceleration": "total"}, "wrench.acceleration: 'total' is not known"),
        ({"bodies": []}, "the list of bodies is empty"),
    ],
)
def test_settings_are_checked(options, text):
    with pytest.raises(InputError, match=text):
        read(WrenchSettings, plain_entry(options, "wrench"))


def test_classical_uncertainty_stays_as_asked():
    found = identify(ROBOT, table(), model="wrench", uncertainty="classical")
    assert found.uncertainty["method"] == "classical"


@pytest.mark.parametrize("digits", [3, 5])
def test_few_figures_are_no_reason_to_complain(digits):
    """Three figures are noise of some thousandths: found, weighed, and no fault of the table."""
    found = fit(table(8, digits), parameters="full")
    assert set(codes(found)) <= {"not-excited", "correlated", "weak-parameters"}
    inside = [one.ci95[0] <= TRUTH[one.name] <= one.ci95[1] for one in found.parameters]
    # 56 parameters, those of a body correlated: four deviations of a share of 0.95.
    assert np.mean(inside) > 0.83


def test_tables_are_simulated_from_the_command_line(tmp_path):
    file = tmp_path / "t.csv"
    call = ["simulate", "serial6", "--table", "--instants", "6", "--digits", "7", "--out", str(file)]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    assert len(file.read_text().splitlines()) == 37
    truth = json.loads((tmp_path / "t.truth.json").read_text())["parameters"]
    found = fit(file)
    assert {one.name: truth[one.name] for one in found.parameters} == {
        one.name: TRUTH[one.name] for one in found.parameters
    }
    # Slow motion: inertias show a tenth as well as with the paper's.
    assert worst(found) < 5e-3
    closed = CliRunner().invoke(main, ["simulate", "dualv", "--table", "--out", str(tmp_path / "d.csv")])
    assert closed.exit_code == 2
    assert "closed loops" in closed.output
    wrong = CliRunner().invoke(
        main, ["simulate", "serial6", "--digits", "5", "--out", str(tmp_path / "d.csv")]
    )
    assert wrong.exit_code == 2


def test_long_tables_share_blocks():
    """More instants than blocks: some share one, and the answer stays."""
    found = fit(table(450, 6), bodies=["B5", "B6"])
    assert worst(found) < 1e-3
    assert found.fit.n_rows == 450 * 12
