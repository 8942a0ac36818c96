"""MJCF read by dynid against MuJoCo itself: poses, inverse dynamics, closures and their Jacobians."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.kinematics.assembly import Assembly
from dynid.kinematics.closure import Closure
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.regressor import tree_matrix
from tests.random_mechanisms import random_states

mujoco = pytest.importorskip("mujoco")

INERTIAL = '<inertial pos="0.05 -0.02 0.1" mass="{m}" fullinertia="0.03 0.04 0.05 0.002 -0.003 0.004"/>'
HEAVY, LIGHT = INERTIAL.format(m=2.5), INERTIAL.format(m=0.7)

SERIAL = f"""
<mujoco model="odd">
  <compiler angle="radian" eulerseq="zYx"/>
  <option gravity="1 -2 -9"/>
  <default>
    <joint axis="0 1 0" pos="0.01 0.02 0.03"/>
    <default class="slider"><joint type="slide" axis="1 2 2" ref="0.3"/>
      <default class="skew"><joint axis="0 3 4"/></default></default>
    <default class="hinges"><joint ref="0.4" armature="0.0"/></default>
  </default>
  <worldbody>
    <body name="one" pos="0.1 0.2 0.3" euler="0.3 -0.4 0.5">
      <joint name="a"/> {HEAVY}
      <body pos="0 0.1 0.4" axisangle="1 2 3 0.7" childclass="slider">
        <joint name="b"/> {LIGHT}
        <body name="three" xyaxes="1 0.2 0 0.1 1 0.3">
          <joint name="c" class="skew" pos="0.2 0 0"/>
          <joint class="hinges" pos="0.1 -0.2 0.3"/>
          <joint class="hinges" axis="1 0 0" pos="0 0 0.1"/>
          <inertial pos="0 0 0.1" quat="1 2 3 4" mass="1.2" diaginertia="0.02 0.03 0.04"/>
          <frame pos="0.1 0 0.2" quat="0.7071 0 0.7071 0">
            <frame euler="0 0 1">
              <body name="tip" pos="0 0 0.2" zaxis="1 -1 0.5">
                <joint name="d" type="hinge" ref="-1" class="hinges"/> {LIGHT}
                <body name="welded" pos="0.3 0 0" quat="0 1 0 0"> {LIGHT} </body>
              </body>
            </frame>
          </frame>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

TREE = f"""
<mujoco model="tree">
  <compiler eulerseq="XYZ"/>
  <worldbody>
    <body name="base" pos="0.1 0 1" euler="10 20 30"> <freejoint name="root"/> {HEAVY}
      <body name="arm" pos="0 0 0.2" euler="90 0 45">
        <joint type="ball" name="shoulder" pos="0 0.1 0"/> {LIGHT}
        <body name="hand" pos="0 0 0.3"> <joint range="-90 90" ref="30" pos="0 0 -0.1"/> {LIGHT} </body>
      </body>
      <body name="rail" pos="0.3 0 0"> <joint name="rail" type="slide" axis="0 0 -1"/> {LIGHT}
        <body name="wrist"> <joint type="ball"/> <joint type="slide" name="last"/> {LIGHT} </body>
      </body>
    </body>
    <body name="table" pos="2 0 0"> {HEAVY}
      <body name="lid" pos="0 0 1"><joint name="lid" axis="0 1 0"/> {LIGHT}</body>
    </body>
  </worldbody>
</mujoco>"""

FOUR_BAR = f"""
<mujoco model="four_bar">
  <worldbody>
    <body name="crank" pos="0 0 0"> <joint name="crank" axis="0 1 0"/> {LIGHT}
      <body name="coupler" pos="0.1 0 0.2" euler="0 30 0"> <joint name="knee" axis="0 1 0"/> {HEAVY} </body>
    </body>
    <body name="rocker" pos="0.5 0 0" euler="0 15 0">
      <joint name="rocker" axis="0 1 0" ref="20"/> {LIGHT}
    </body>
  </worldbody>
  <equality> <connect name="pin" body1="coupler" body2="rocker" anchor="0.3 0 0.2"/> </equality>
  <actuator> <motor name="drive" joint="crank" gear="50"/> </actuator>
</mujoco>"""

SLIDER_CRANK = f"""
<mujoco model="slider_crank">
  <worldbody>
    <body name="crank" pos="0 0 0.1" euler="0 -40 0"> <joint name="crank" axis="0 1 0" ref="-40"/> {LIGHT}
      <body name="rod" pos="0.2 0 0" euler="0 60 0"> <joint name="pin" axis="0 1 0"/> {LIGHT}
        <body name="end" pos="0.5 0 0" euler="0 -20 0"> <joint name="wrist" axis="0 1 0"/> {LIGHT} </body>
      </body>
    </body>
    <body name="piston" pos="0.6 0 0.3">
      <joint name="piston" type="slide" axis="1 0 0" ref="0.6"/> {HEAVY}
    </body>
  </worldbody>
  <equality> <weld name="grip" body1="end" body2="piston" WELD/> </equality>
  <actuator> <position joint="crank"/> </actuator>
</mujoco>"""

SITES = f"""
<mujoco model="sites">
  <default><site pos="0.2 0 0" axisangle="1 1 0 40"/></default>
  <worldbody>
    <site name="floor" pos="0 0.1 1.2" euler="0 0 30"/>
    <body name="plate" pos="0 0 1" euler="-90 -40 10"> <freejoint/> {HEAVY}
      <frame pos="0 0.1 0" euler="0 30 0"> <site name="corner" quat="1 1 0 0"/> </frame>
      <site name="edge"/>
      <body name="bob" pos="0 0 0.4">
        <joint type="ball" name="bob"/> {LIGHT} <site name="tip" pos="0 0 0.3"/>
      </body>
    </body>
    <body name="lever" pos="-0.4 0.3 1.6">
      <joint name="lever"/> {LIGHT} <site name="knob" pos="0 0.2 -0.1"/>
    </body>
  </worldbody>
  <equality> <weld site1="floor" site2="corner"/> <connect site1="tip" site2="knob"/> </equality>
  <actuator> <motor joint="lever"/> </actuator>
</mujoco>"""

GANTRY = f"""
<mujoco model="gantry">
  <worldbody>
    <body name="beam" pos="0 0 1"> <joint name="left" type="slide" axis="1 0 0" ref="0.2"/> {HEAVY}
      <body name="trolley" pos="0 0.1 0"> <joint name="y" type="slide" axis="0 1 0"/> {LIGHT}
        <body name="quill"> <joint name="z" type="slide" axis="0 0 -1"/> <joint name="yaw"/> {LIGHT} </body>
      </body>
    </body>
    <body name="foot" pos="0 1 1"> <joint name="right" type="slide" axis="-1 0 0" ref="0.1"/> {LIGHT} </body>
    <body name="gear" pos="0 0 2"> <joint name="gear" ref="30"/> {LIGHT} </body>
    <body name="brake" pos="0 0 3"> <joint name="brake" ref="10"/> {LIGHT} </body>
  </worldbody>
  <equality>
    <joint joint1="right" joint2="left" polycoef="0.05 -1"/>
    <joint joint1="gear" joint2="left" polycoef="0.3 25 0 0 0"/>
    <joint joint1="brake" polycoef="0.2"/>
  </equality>
  <actuator>
    <motor joint="gear" gear="2"/> <motor joint="y"/> <motor joint="z"/> <motor joint="yaw"/>
  </actuator>
</mujoco>"""


@pytest.fixture(autouse=True, scope="module")
def _no_log_file():
    """Massless links between joints can make MuJoCo's mass matrix singular; inverse dynamics has no need
    of it, but MuJoCo would write its warning to a file in the working directory."""
    mujoco.set_mju_user_warning(lambda text: None)
    yield
    mujoco.set_mju_user_warning(None)


def both(tmp_path: Path, text: str):
    """The model in dynid and in MuJoCo, from one file."""
    file = tmp_path / "model.xml"
    file.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(file))
    return load_robot(file), model, mujoco.MjData(model)


def chi_of(robot: Mechanism) -> np.ndarray:
    """Priors as the values of all standard parameters; drive terms zero where the model has none."""
    return np.array(
        [
            robot.bodies[one.owner].prior[one.symbol]
            if one.symbol in SYMBOLS
            else robot.prior.get(one.name, 0.0)
            for one in parameter_table(robot)
        ]
    )


def check_tree(robot: Mechanism, model, data, seed: int = 0, rtol: float = 1e-12) -> None:
    """Poses of all named bodies and inverse dynamics at random states: q is qpos, dq is qvel."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # limits, and the cut loops
    q, dq, ddq = random_states(np.random.default_rng(seed), robot, 5)
    tau = tree_matrix(robot, q, dq, ddq) @ chi_of(robot)
    tree = tree_of(robot)
    motion = body_motion(tree, q, dq, ddq)
    assert q.shape[1] == model.nq
    assert dq.shape[1] == model.nv
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], dq[i], ddq[i]
        mujoco.mj_inverse(model, data)
        # One pass of rounding through frames of size 1; inertias are diagonalised by MuJoCo.
        scale = max(1.0, float(np.abs(data.qfrc_inverse).max()))
        np.testing.assert_allclose(tau[i], data.qfrc_inverse, atol=rtol * scale)
        for k in range(1, model.nbody):
            name = model.body(k).name or f"body{k}"
            at = tree.body_names.index("base_" if name == "base" else name)
            np.testing.assert_allclose(motion.p[i, at], data.xpos[k], atol=1e-12)
            np.testing.assert_allclose(motion.R[i, at], data.xmat[k].reshape(3, 3), atol=1e-12)


@pytest.mark.parametrize("text", [SERIAL, TREE], ids=["serial", "tree"])
def test_trees_have_mujocos_poses_and_torques(tmp_path, text) -> None:
    check_tree(*both(tmp_path, text))


@pytest.mark.parametrize("text", [FOUR_BAR, SITES, GANTRY], ids=["four_bar", "sites", "gantry"])
def test_trees_of_closed_robots_have_them_too(tmp_path, text) -> None:
    check_tree(*both(tmp_path, text))


WELDS = [
    "",
    'anchor="0.1 0.2 -0.3"',
    'relpose="0.02 0 0.1 1 0 0 0"',
    'anchor="0.1 0 0.3" relpose="0 0 0.3 1 0 0.2 0"',
]


@pytest.mark.parametrize(
    "text",
    [FOUR_BAR, *(SLIDER_CRANK.replace("WELD", weld) for weld in WELDS), SITES, GANTRY],
    ids=["four_bar", "weld", "weld_anchor", "weld_relpose", "weld_both", "sites", "gantry"],
)
def test_closures_are_mujocos(tmp_path, text) -> None:
    """Closed exactly where MuJoCo is, and moved by the same directions."""
    robot, model, data = both(tmp_path, text)
    closure = Closure(robot)
    assembly = Assembly(robot)
    rng = np.random.default_rng(1)
    closed = assembly.walk(rng, 6, reach=0.3)
    open_, _, _ = random_states(rng, robot, 6)
    for q in closed:
        residual, J = efc(model, data, q)
        # Both are rounding of lengths near 1.
        np.testing.assert_allclose(closure.values(q[None]).f, 0.0, atol=1e-12)
        np.testing.assert_allclose(residual, 0.0, atol=1e-12)
        A = closure.values(q[None]).A[0]
        rank = assembly.rank
        assert np.linalg.matrix_rank(J, tol=1e-8) == rank
        assert np.linalg.matrix_rank(A, tol=1e-8) == rank
        # The rows of one lie in the span of the other's; 1e-8 tells a row from rounding.
        assert np.linalg.matrix_rank(np.vstack([A, J]), tol=1e-8) == rank
    for q in open_:
        residual, _ = efc(model, data, q)
        assert (np.abs(residual).max() > 1e-3) == (np.abs(closure.values(q[None]).f).max() > 1e-3)


@pytest.mark.parametrize(
    "text",
    [FOUR_BAR, SLIDER_CRANK.replace("WELD", ""), SITES, GANTRY],
    ids=["four_bar", "slider_crank", "sites", "gantry"],
)
def test_closed_robots_obey_mujocos_equations(tmp_path, text) -> None:
    """N^T W chi = N^T B tau with MuJoCo's accelerations and motor forces, gears and rotors included."""
    drive = 'armature="0.02" damping="0.3"'
    with_rotors = text.replace("</worldbody>", f"</worldbody><default><joint {drive}/></default>")
    robot, model, data = both(tmp_path, with_rotors)
    every = {name: ("Ia", "Fv") for name in robot.coordinates if "plate" not in name}
    robot = replace(robot, drive=every)  # dampers of passive joints act as well
    model.opt.tolerance, model.opt.iterations = 1e-15, 500
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    assembly = Assembly(robot)
    rng = np.random.default_rng(2)
    q = assembly.walk(rng, 6, reach=0.3)
    dq, _, N = assembly.random_rates(q, rng)
    ddq, tau = np.zeros_like(dq), np.zeros((len(q), model.nu))
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[i], dq[i], 5.0 * rng.normal(size=model.nu)
        mujoco.mj_forward(model, data)
        ddq[i], tau[i] = data.qacc, data.actuator_force
    joint_efforts = tree_matrix(robot, q, dq, ddq) @ chi_of(robot)
    left = np.einsum("nvd,nv->nd", N, joint_efforts)
    right = np.einsum("nvd,nv->nd", N, tau @ robot.actuator_map)
    # The reactions leave no more than their rounding: 2e-15 of the largest effort when written.
    np.testing.assert_allclose(left, right, atol=1e-12 * np.abs(joint_efforts).max())


def words(values) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def random_orientation(rng) -> str:
    kind = rng.choice(["quat", "axisangle", "xyaxes", "zaxis", "euler", ""])
    count = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}.get(str(kind), 0)
    return f'{kind}="{words(rng.normal(size=count))}"' if kind else ""


def random_joint(rng, first: bool, last: bool) -> str:
    """A hinge, slide or ball with random anchor, axis and reference, some from a default class."""
    kind = rng.choice(["hinge", "slide", "ball"] if last else ["hinge", "slide"])
    axis = f'axis="{words(rng.normal(size=3))}"'  # two joints with the axis of a class would be one
    chosen = rng.choice([axis, "", 'class="special"']) if first else axis
    anchor = f'pos="{words(0.2 * rng.normal(size=3))}"' if rng.random() < 0.6 else ""
    ref = f'ref="{words(rng.normal())}"' if rng.random() < 0.5 and kind != "ball" else ""
    return f'<joint type="{kind}" {chosen} {anchor} {ref}/>'


def random_body(rng, depth: int, free: bool) -> str:
    A = rng.normal(size=(3, 3))
    tensor = (A @ A.T) * 0.01
    tensor = np.trace(tensor) * np.eye(3) - tensor  # that of a mass distribution
    full = words(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    joints = "<freejoint/>" if free else ""
    if not free:
        count = int(rng.integers(0, 4))
        joints = "".join(random_joint(rng, i == 0, i == count - 1) for i in range(count))
    inner = "".join(
        random_body(rng, depth - 1, free=False) for _ in range(rng.integers(0, 3) if depth else 0)
    )
    if inner and rng.random() < 0.5:
        inner = f'<frame pos="{words(rng.normal(size=3))}" {random_orientation(rng)}>{inner}</frame>'
    childclass = 'childclass="special"' if rng.random() < 0.3 else ""
    return (
        f'<body pos="{words(0.5 * rng.normal(size=3))}" {random_orientation(rng)} {childclass}>{joints}'
        f'<inertial pos="{words(0.1 * rng.normal(size=3))}" mass="{words(rng.uniform(0.5, 3))}"'
        f' fullinertia="{full}"/>{inner}</body>'
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_models_have_mujocos_poses_and_torques(tmp_path_factory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sequence = "".join(rng.choice(list("xyzXYZ"), 3))
    world = "".join(random_body(rng, 2, free=bool(rng.random() < 0.3)) for _ in range(rng.integers(1, 3)))
    text = (
        f'<mujoco><compiler angle="{rng.choice(["radian", "degree"])}" eulerseq="{sequence}"/>'
        f'<option gravity="{words(rng.uniform(-10, 10, 3))}"/><default><joint axis="1 2 3"/>'
        f'<default class="special"><joint axis="0 -1 0" pos="0 0.1 0"/></default></default>'
        f"<worldbody>{world}<body><joint/>{HEAVY}</body></worldbody></mujoco>"
    )
    check_tree(*both(tmp_path_factory.mktemp("random"), text), seed=seed)


def efc(model, data, q):
    """MuJoCo's equality residuals and their Jacobian at positions q."""
    data.qpos[:], data.qvel[:] = q, 0.0
    mujoco.mj_forward(model, data)
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        J = data.efc_J.reshape(data.nefc, model.nv)
    return data.efc_pos[rows].copy(), J[rows].copy()
