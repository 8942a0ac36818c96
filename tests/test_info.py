"""What any motion can tell: base counts, names, groupings, variants of a robot."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid import load_robot
from dynid.base.base import base_set
from dynid.common.errors import InputError
from dynid.info import describe
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Payload
from dynid.mechanism.parameters import considered_order, parameter_table
from dynid.mechanism.variant import variant
from dynid.projection.inverse import inverse_directions
from dynid.projection.structure import structural_factor
from dynid.report.info_text import print_info
from tests.oracle import pinocchio_regressor
from tests.random_mechanisms import random_states, random_tree


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_count_is_the_rank_of_an_independent_regressor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 4, kinds=(JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.FIXED))
    if not robot.coordinates:
        return
    q, dq, ddq = random_states(rng, robot, 60)
    W = pinocchio_regressor(robot, q, dq, ddq).reshape(-1, 40)
    scale = np.linalg.norm(W, axis=0)
    W = W[:, scale > 1e-9] / scale[scale > 1e-9]
    # Unit columns: geometry leaves singular values above 1e-6, rounding below 1e-12.
    assert describe(robot).n_base == np.linalg.matrix_rank(W, tol=1e-9 * np.linalg.norm(W, 2))


@pytest.mark.parametrize(("name", "count"), [("serial6", 36), ("puma560", 36), ("ur5", 36), ("panda", 43)])
def test_counts_of_well_known_arms(name: str, count: int) -> None:
    """36 for a general 6R arm with a vertical first axis, 43 for the Panda (Gaz et al. 2019)."""
    assert describe(load_robot(name), drive=()).n_base == count


def test_a_tree_needs_no_compiled_code() -> None:
    """Loading or compiling kernels takes longer than all the rest of `dynid info`."""
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from dynid.cli import main; main(['info', 'ur5'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "58 base parameters" in done.stdout


def test_counts_and_names_do_not_depend_on_the_random_states() -> None:
    robot = load_robot("puma560")
    parameters, directions = parameter_table(robot), inverse_directions(robot)
    order = considered_order(robot, parameters)
    found = {
        base_set(parameters, structural_factor(robot, parameters, directions, seed=seed), order).names
        for seed in range(8)
    }
    assert len(found) == 1


def test_counts_do_not_depend_on_the_unit_of_length() -> None:
    """The same robot in millimetres: every length and gravity times a thousand."""
    robot = load_robot("ur5")
    scaled = replace(
        robot,
        gravity=1000.0 * robot.gravity,
        joints=tuple(
            replace(joint, placement=replace(joint.placement, p=1000.0 * joint.placement.p))
            for joint in robot.joints
        ),
        rebuild=None,
    )
    names = [one.name for one in describe(robot).base]
    assert [one.name for one in describe(scaled).base] == names


def test_preferred_columns_survive() -> None:
    robot = load_robot("puma560")
    first = replace(robot, order=("link_4", "Ia_*"))
    survivors = {one.name.removesuffix("_R") for one in describe(first).base}
    plain = {one.name.removesuffix("_R") for one in describe(robot).base}
    assert len(survivors) == len(plain)
    assert {"M_link_4", "Ia_joint_1"} <= survivors
    assert "M_link_4" not in plain


def test_known_relations_of_a_planar_arm_come_out_in_symbols(tmp_path) -> None:
    """Two parallel axes, gravity along them: ZZ1R = ZZ1 + d2^2 M2, the textbook case."""
    file = tmp_path / "planar.yaml"
    file.write_text(
        "name: planar\n"
        "gravity: [0, 0, -9.81]\n"
        "symbols: {d2: 0.4}\n"
        "joints:\n"
        "  - {name: a, kind: revolute, parent: base, child: one}\n"
        "  - {name: b, kind: revolute, parent: one, child: two, mdh: {d: d2}}\n"
    )
    info = describe(load_robot(file))
    assert info.n_base == 4
    groupings = {one.name: one.grouping for one in info.base}
    assert groupings["ZZ_one_R"] == "ZZ_one_R = ZZ_one + d2^2 M_two"
    assert set(groupings) == {"ZZ_one_R", "ZZ_two", "MX_two", "MY_two"}
    assert "M_one" in info.eliminated
    assert "M_two" in info.grouped


def test_drive_terms_can_be_replaced() -> None:
    robot = load_robot("puma560")
    assert describe(robot, drive=()).n_standard == 60
    assert describe(robot, drive=("Fs", "Ia")).n_standard == 72
    with pytest.raises(InputError, match="unknown drive term 'Fx'"):
        describe(robot, drive=("Fx",))


def test_a_sub_chain_alone() -> None:
    robot = load_robot("puma560")
    part = describe(robot, bodies=("link_1", "link_2"), drive=())
    assert (part.n_bodies, part.n_standard, part.dof) == (2, 20, 2)
    with pytest.raises(InputError, match="add 'link_1'"):
        describe(robot, bodies=("link_2",))
    with pytest.raises(InputError, match="did you mean 'link_2'"):
        describe(robot, bodies=("link_1", "link2"))


def test_a_payload_counts_only_when_mounted() -> None:
    robot = replace(load_robot("puma560"), payloads={"load": Payload("load", "link_6")})
    empty, loaded = describe(robot, drive=()), describe(robot, drive=(), payloads=("load",))
    assert (empty.n_standard, loaded.n_standard) == (60, 70)
    # Runs with and without it: all ten of a body that turns every way are separated.
    assert loaded.n_base == empty.n_base + 10
    with pytest.raises(InputError, match="no payload 'lod'") as caught:
        describe(robot, payloads=("lod",))
    assert "payloads:" in caught.value.remedy


def test_a_tie_makes_equal_legs_one() -> None:
    from dynid.mechanism.mechanism import Tie

    legs = random_tree(np.random.default_rng(2), 2, kinds=(JointKind.REVOLUTE,), drive=("Fv",))
    joints = tuple(replace(joint, parent="base") for joint in legs.joints)
    tie = Tie("legs", (("body0", "body1"), ("joint0", "joint1")))
    legs = replace(legs, joints=joints, ties={"legs": tie})
    alone, tied = describe(legs), describe(legs, ties=("legs",))
    assert tied.n_base < alone.n_base
    assert not any("body1" in one.name or "joint1" in one.name for one in tied.base)


def test_a_variant_keeps_its_changes_when_its_geometry_changes() -> None:
    robot = variant(load_robot("puma560"), drive=("Fv",))
    assert robot.rebuild is not None
    rebuilt = robot.rebuild(robot.geometry)
    assert rebuilt.drive == robot.drive
    assert len(parameter_table(rebuilt)) == 66


def test_a_huge_robot_is_refused_before_memory_is() -> None:
    robot = random_tree(np.random.default_rng(0), 400, kinds=(JointKind.REVOLUTE,), chain=True)
    with pytest.raises(InputError, match="4000 parameters"):
        describe(robot)


@pytest.mark.parametrize("width", [50, 60, 100])
def test_a_narrow_terminal_loses_nothing(width: int) -> None:
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    found = describe(load_robot("panda"))
    print_info(found, Console(file=text, width=width))
    assert "\N{HORIZONTAL ELLIPSIS}" not in text.getvalue()
    words = text.getvalue().split()
    assert all(entry.name in words for entry in found.base)
