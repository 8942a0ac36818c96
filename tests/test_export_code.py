"""Controller code: compiled or imported, it gives the efforts of the estimate, whatever its names are."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.common.expression import parse
from dynid.exporters import EXPORTERS
from dynid.exporters.code import compiled, export_c, export_numpy, kept_values
from dynid.exporters.code.compiled import c_efforts, compiler, imported
from dynid.exporters.code.graph import Graph
from dynid.exporters.code.model import controller_model
from dynid.exporters.code.printing import comment, identifier, parameter_names
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Actuator, Body, Coupling, Mechanism, Term
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import variant
from dynid.motion.logs import log_from_arrays
from dynid.prediction.predict import predict_efforts
from dynid.simulation.prescribed import inverse_efforts
from dynid.statistics.estimate import Estimate
from tests.built_in import robot_of, truth_of
from tests.test_docs import blocks, pages_with, relative
from tests.test_predict import estimate, exact, motion_of

STRICT = ("-std=c99", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
# Undefined behaviour ends the process: no library of the sanitiser is needed.
CAREFUL = (*STRICT, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
HOSTILE = '*/ "; rm -rf ??/\n\\ <script> \'\'\' """ é'
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")
SAME = 1e-12  # of the largest effort: rounding in another order, through a closure of condition 100


def sparse(name: str) -> tuple[np.ndarray, ...]:
    """Some states of a trajectory: t, q, dq, ddq."""
    if name == "cable8":
        return pose_states()
    _, t, q, dq, ddq = motion_of(name)
    return t[::20], q[::20], dq[::20], ddq[::20]


def pose_states() -> tuple[np.ndarray, ...]:
    """A platform that moves along sines and turns about a fixed axis: t, q, dq, ddq."""
    t = np.arange(0.05, 1.05, 0.02)
    w, size = np.array([3.0, 4.0, 5.0]), np.array([0.1, 0.12, 0.08])
    arg = w * t[:, None]
    q, dq, ddq = (np.zeros((len(t), 7)) for _ in range(3))
    q[:, :3], dq[:, :3], ddq[:, :3] = size * np.sin(arg), size * w * np.cos(arg), -size * w**2 * np.sin(arg)
    half, rate, second = 0.1 * np.sin(4.0 * t), 0.4 * np.cos(4.0 * t), -1.6 * np.sin(4.0 * t)
    axis = np.array([0.6, 0.0, 0.8])
    c, s = np.cos(half), np.sin(half)
    q[:, 3], q[:, 4:] = c, s[:, None] * axis
    dq[:, 3], dq[:, 4:] = -s * rate, (c * rate)[:, None] * axis
    ddq[:, 3], ddq[:, 4:] = -s * second - c * rate**2, (c * second - s * rate**2)[:, None] * axis
    return t, q, dq, ddq


def predicted(known: Estimate, robot: Mechanism, states: tuple[np.ndarray, ...], **options) -> np.ndarray:
    t, q, dq, ddq = states
    return predict_efforts(
        known, log_from_arrays(robot, t, q, None, dq=dq, ddq=ddq), robot=robot, **options
    ).tau


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected).max() < SAME * np.abs(expected).max()


@cache
def module_of(name: str, folder: Path):
    robot = robot_of(name)
    folder.mkdir(exist_ok=True)
    return imported(export_numpy(exact(name), robot, folder).files[0])


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("code")


@pytest.mark.parametrize("name", ["scara", "fivebar", "dualv", "cable8"])
def test_numpy_module_gives_the_efforts_of_the_estimate(name: str, folder: Path) -> None:
    states = sparse(name)
    found = module_of(name, folder).inverse_dynamics(*states[1:])
    assert_same(found, predicted(exact(name), robot_of(name), states))


@needs_compiler
@pytest.mark.parametrize("name", ["scara", "fivebar", "dualv"])
def test_c_code_compiles_without_warning_and_gives_the_efforts(name: str, tmp_path: Path) -> None:
    robot = robot_of(name)
    source = export_c(exact(name), robot, tmp_path).files[0]
    states = sparse(name)
    found = c_efforts(source, name, len(robot.actuators), CAREFUL)(*states[1:])
    assert_same(found, predicted(exact(name), robot, states))


# Names in the documentation, and robots with as many motors or with loops.
IN_DOCS = {"arm": "scara", "hexapod": "fivebar", "delta": "fivebar", "cable8": "cable8"}


@needs_compiler
@pytest.mark.parametrize("page", pages_with("c"), ids=relative)
def test_c_of_the_documentation_compiles(page: Path, tmp_path: Path) -> None:
    for _, text in blocks(page, "c"):
        (name,) = {found.lower() for found in re.findall(r"\b(\w+)_inverse_dynamics", text)}
        export_c(exact(IN_DOCS[name]), replace(robot_of(IN_DOCS[name]), name=name), tmp_path)
        states = "const double q[], const double dq[], const double ddq[], double tau[]"
        if "#include" not in text:
            head = f'#include "{name}.h"\nvoid call({states});\nvoid call({states})'
            text = f"{head}\n{{\n{text}}}\n"
        (tmp_path / "block.c").write_text(text)
        subprocess.run(["cc", *STRICT, "-fsyntax-only", "block.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("name", ["scara", "fivebar", "dualv", "cable8"])
def test_regressor_times_parameters_are_the_efforts(name: str, folder: Path) -> None:
    module, states = module_of(name, folder), sparse(name)[1:]
    Y = module.regressor(*states)
    assert Y.shape[1:] == (len(module.ACTUATORS), len(module.PARAMETERS))
    assert_same(Y @ module.VALUES, module.inverse_dynamics(*states))


@pytest.mark.parametrize("name", ["scara", "fivebar"])
def test_mass_matrix_gravity_and_friction_add_up(name: str, folder: Path) -> None:
    """tau(ddq) - tau(0) = M ddq, tau at rest = gravity + friction at rest; M is symmetric and positive."""
    module, (q, dq, ddq) = module_of(name, folder), sparse(name)[1:]
    still = np.zeros_like(dq)
    M = module.mass_matrix(q)
    assert module.FREEDOMS == module.MEASURED == module.ACTUATORS
    inertial = module.inverse_dynamics(q, dq, ddq) - module.inverse_dynamics(q, dq, still)
    assert_same(np.einsum("nij,nj->ni", M, ddq), inertial)
    assert np.linalg.eigvalsh(M).min() > 0.0
    at_rest = module.inverse_dynamics(q, still, still)
    scale = np.abs(module.inverse_dynamics(q, dq, ddq)).max()
    losses = module.friction(q, still, still)
    assert np.abs(module.gravity(q) + losses - at_rest).max() < SAME * scale


def test_preferred_tension_is_added_where_it_moves_nothing(folder: Path) -> None:
    robot = robot_of("dualv")
    module, states = module_of("dualv", folder), sparse("dualv")
    least = predicted(exact("dualv"), robot, states)
    tense = predicted(exact("dualv"), robot, states, tension=5.0)
    assert np.abs(tense - least).max() > 1.0
    assert_same(module.inverse_dynamics(*states[1:], internal=tense), tense)
    # Any preferred efforts: what is added is orthogonal to the least efforts.
    wanted = np.array([3.0, -1.0, 2.0, 4.0])
    added = module.inverse_dynamics(*states[1:], internal=wanted) - least
    assert np.abs(np.sum(added * least, axis=1)).max() < SAME * np.abs(least).max() ** 2
    assert np.abs(np.sum(added * (wanted - added), axis=1)).max() < 1e-10  # a projection, of size 30


def loaded(name: str, **changes) -> tuple[Mechanism, Estimate]:
    """A robot with changes, and an estimate of all its standard parameters."""
    robot, truth = robot_of(name), truth_of(name)
    robot = variant(replace(robot, **changes))
    table, rng = parameter_table(robot), np.random.default_rng(5)
    values = [truth[p.name] if p.kind == "inertial" else rng.uniform(0.05, 0.3) for p in table]
    return robot, estimate(name, [p.name for p in table], [p.unit for p in table], values)


@pytest.mark.parametrize("name", ["scara", "dualv"])
def test_every_drive_term_is_that_of_the_kernels(name: str, tmp_path: Path) -> None:
    motors = [actuator.name for actuator in robot_of(name).actuators]
    speeds = dict.fromkeys(motors, 0.3)
    robot, known = loaded(name, drive=dict.fromkeys(motors, DRIVE_SYMBOLS), stribeck=speeds)
    module = imported(export_numpy(known, robot, tmp_path).files[0])
    states = sparse(name)
    assert_same(module.inverse_dynamics(*states[1:]), predicted(known, robot, states))
    assert_same(module.regressor(*states[1:]) @ module.VALUES, module.inverse_dynamics(*states[1:]))
    still = np.zeros_like(states[1])
    offsets = {n: v for n, v in zip(module.PARAMETERS, module.VALUES, strict=True) if n.startswith("Off_")}
    # At rest sign(0) = 0: only the offsets are left.
    rest = module.friction(states[1], still, still)
    assert np.abs(rest).max() <= np.linalg.norm(list(offsets.values())) * (1.0 + SAME)


def test_declared_terms_and_couplings(tmp_path: Path) -> None:
    robot = robot_of("scara")
    a, b, c, d = robot.coordinates
    terms = (
        Term("spring", a, parse(f"-2*sin(q({a}) - 0.3)^2 + q({b})^3")),
        Term("drag", b, parse(f"abs(dq({b}))*dq({b}) + atan2(q({a}), 2)")),
    )
    robot, known = loaded(
        "scara",
        terms=terms,
        couplings=(Coupling(d, {a: 0.5, b: -1.0}, 0.2),),
        measured=(a, b, c),
        actuators=robot.actuators[:3],
        drive={},
    )
    module = imported(export_numpy(known, robot, tmp_path).files[0])
    t, q, dq, ddq = sparse("scara")
    states = t, q[:, :3], dq[:, :3], ddq[:, :3]
    assert_same(module.inverse_dynamics(*states[1:]), predicted(known, robot, states))


def test_one_state_is_a_batch_of_its_own(folder: Path) -> None:
    module, (q, dq, ddq) = module_of("fivebar", folder), sparse("fivebar")[1:]
    tau = module.inverse_dynamics(q, dq, ddq)
    assert module.inverse_dynamics(q[3], dq[3], ddq[3]).shape == tau[3].shape
    assert_same(module.inverse_dynamics(q[3], dq[3], ddq[3]), tau[3])
    with pytest.raises(ValueError, match="last axis"):
        module.gravity(q[:, :1])
    assert np.isnan(module.gravity(np.array([[50.0, -70.0]]) * np.nan)).all()


def address(x: np.ndarray) -> ctypes.c_void_p:
    return x.ctypes.data_as(ctypes.c_void_p)


@needs_compiler
def test_warm_start_and_pose_that_does_not_close(tmp_path: Path) -> None:
    robot = robot_of("fivebar")
    assert robot.rebuild is not None
    robot = robot.rebuild(
        {**robot.geometry, "l2": 0.3}
    )  # too short for motors that point away from each other
    library = compiled.library(export_c(exact("fivebar"), robot, tmp_path).files[0], STRICT)
    state = (ctypes.c_double * len(robot.positions))()
    library.fivebar_start(state)
    q = np.array([2.3, 0.8]) + 0.2 * np.sin(np.arange(20)[:, None] / [5.0, 7.0])
    cold, warm, turned = np.empty((3, len(q), 2))
    for k, one in enumerate(q):
        library.fivebar_gravity(address(one), address(cold[k]))
        library.fivebar_gravity(address(one + 4.0 * np.pi), address(turned[k]))
        assert library.fivebar_gravity_warm(state, address(one), address(warm[k])) == 0
    assert_same(warm, cold)
    assert_same(turned, cold)
    before = list(state)
    for far in ([np.nan, 0.0], [np.inf, 0.0], [1e300, 0.0], [np.pi, 0.0]):
        tau = np.empty(2)
        assert library.fivebar_gravity_warm(state, address(np.array(far)), address(tau)) == 1
        assert list(state) == before
        assert np.isfinite(tau).all()
        library.fivebar_gravity(address(np.array(far)), address(tau))
        assert np.isnan(tau).all()


def pendulum(name: str) -> tuple[Mechanism, Estimate]:
    """A pendulum with friction, all of whose names are `name`."""
    axis = np.array([0.0, 1.0, 0.0])
    robot = Mechanism(
        name=name,
        gravity=np.array([0.0, 0.0, -9.81]),
        joints=(Joint(name, JointKind.REVOLUTE, "base", name, axes=(axis,)),),
        bodies={name: Body(name)},
        actuators=(Actuator(name, {name: 1.0}),),
        measured=(name,),
        drive={name: ("Ia", "Fv+", "Fv-")},
    )
    table = parameter_table(robot)
    values = np.linspace(0.1, 1.0, len(table))
    return robot, estimate(name, [p.name for p in table], [p.unit for p in table], values)


@needs_compiler
def test_hostile_names_break_nothing(tmp_path: Path) -> None:
    (robot, known), (plain, _) = pendulum(HOSTILE), pendulum("pendulum")
    verdict = replace(known.verdict, headline=HOSTILE)
    made = export_c(replace(known, verdict=verdict), robot, tmp_path)
    module = imported(export_numpy(replace(known, verdict=verdict), robot, tmp_path).files[0])
    assert sorted(file.parent for file in tmp_path.rglob("*.?")) == [tmp_path] * 2
    assert module.MEASURED == (HOSTILE,)
    states = np.linspace(-1.0, 1.0, 12).reshape(3, 4, 1)
    expected = inverse_efforts(plain, pendulum_values(), *states)
    assert_same(c_efforts(made.files[0], identifier(HOSTILE), 1, STRICT)(*states), expected)
    assert_same(module.inverse_dynamics(*states), expected)


def pendulum_values() -> dict[str, float]:
    robot, known = pendulum("pendulum")
    return {p.name: one.value for p, one in zip(parameter_table(robot), known.parameters, strict=True)}


def test_names_of_parameters_stay_apart() -> None:
    names = ["Fv+_a", "Fv-_a", "Fv_plus_a", "M_a b", "M_a_b", f"M_{HOSTILE}"]
    assert len(set(parameter_names(names))) == len(names)
    assert all(one.isidentifier() and one.isascii() for one in parameter_names(names))


def test_lengths_of_cables_can_be_measured_instead(tmp_path: Path) -> None:
    robot = robot_of("cable8")
    t, *states = pose_states()
    assembly, sensors = assembly_of(robot), sensors_of(robot, robot.measured_positions)
    pose = assembly.follow(states[0], sensors)
    rates = assembly.rates(pose, *sensors.rates(*states), sensors)
    names = tuple(f"cable{k}" for k in range(1, 9))  # more than six: least squares
    robot = replace(robot, measured=names, rebuild=None)
    q = pose[:, [robot.positions.index(name) for name in names]]
    dq, ddq = (x[:, [robot.coordinates.index(name) for name in names]] for x in (rates.dq, rates.ddq))
    module = imported(export_numpy(exact("cable8"), robot, tmp_path).files[0])
    assert_same(module.inverse_dynamics(q, dq, ddq), predicted(exact("cable8"), robot, (t, q, dq, ddq)))


@pytest.mark.parametrize("name", [HOSTILE, "", "3d", "class", "numpy", "__x__", "x" * 300, "*/", "é"])
def test_identifiers_are_valid(name: str) -> None:
    assert identifier(name).isidentifier()
    assert identifier(name).isascii()
    assert len(identifier(name)) < 40
    assert identifier(name) not in ("class", "numpy")
    for bad in ("*/", "/*", "??", "\\", '"', "'", "\n"):
        assert bad not in comment(name)


def test_without_a_compiler_the_code_is_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    made = export_c(exact("scara"), robot_of("scara"), tmp_path)
    assert all(file.is_file() for file in made.files)
    assert made.program == ""
    assert made.read_back is not None
    with pytest.raises(InputError, match=r"no C compiler was found.*the code was written"):
        made.read_back()


def test_formats_are_registered() -> None:
    assert EXPORTERS["c"] is export_c
    assert EXPORTERS["numpy"] is export_numpy


def test_removed_parameters_have_no_column() -> None:
    known, robot = exact("scara"), robot_of("scara")
    first, *others = known.parameters
    less = replace(known, parameters=(replace(first, essential=False, value=0.0, sigma=None), *others))
    assert len(kept_values(less, robot)[1]) == len(kept_values(known, robot)[1]) - 1


def test_payload_of_every_log_is_mounted() -> None:
    robot = robot_of("dualv")
    table = parameter_table(variant(robot, payloads=("payload",)))
    known = estimate("dualv", [p.name for p in table], [p.unit for p in table], np.ones(len(table)))
    logs = [{"use": "identify", "payloads": one} for one in (["payload"], [])]
    mounted, values = kept_values(replace(known, provenance={"inputs": logs[:1]}), robot)
    assert tuple(mounted.payloads) == ("payload",)
    assert any(one.name == "M_payload" for one in values)
    mounted, values = kept_values(replace(known, provenance={"inputs": logs}), robot)
    assert not mounted.payloads
    assert not any(one.name == "M_payload" for one in values)


def test_a_robot_that_its_motors_do_not_hold_is_refused() -> None:
    robot, known = loaded("scara")
    with pytest.raises(InputError, match="actuators of robot"):
        kept_values(known, replace(robot, actuators=robot.actuators[:2]))


def test_platform_on_cables_needs_no_closure() -> None:
    assert controller_model(*kept_values(exact("cable8"), robot_of("cable8"))).solver is None


def test_equal_expressions_are_one_node() -> None:
    graph = Graph()
    x, y = graph.leaf("q", 0), graph.leaf("q", 1)
    assert x + y is y + x
    assert x * 1.0 + 0.0 is x
    assert (x * 0.0).is_zero
    assert (x - y) + (y - x) is graph.constant(0.0)
    negative = -x
    assert -negative is x
    assert (-x) * (-y) is x * y
    assert 2.0 * (3.0 * x) is 6.0 * x
    assert graph.call("cos", -x) is graph.call("cos", x)
    assert graph.call("sin", -x) is -graph.call("sin", x)
    assert graph.call("cos", graph.constant(0.0)) is graph.one
