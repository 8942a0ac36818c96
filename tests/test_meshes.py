"""Collision meshes: files, places in the bodies, capsules that contain them, and what is refused."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dynid.common.errors import InputError
from dynid.excitation.collision import with_capsules
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism import mesh_file
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Capsule, Mechanism
from dynid.mechanism.mesh_capsules import covering, mesh_capsules
from dynid.mechanism.mesh_file import BYTE_LIMIT, read_mesh
from tests.mesh_files import box, obj, stl, stl_text, write

ARM = """<robot name="arm">
<link name="world"><collision><geometry><mesh filename="BASE"/></geometry></collision></link>
<link name="upper"><visual><geometry><mesh filename="seen.stl"/></geometry></visual>
  <collision><origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/>
  <geometry><mesh filename="UPPER" scale="0.001 0.001 -0.002"/></geometry></collision></link>
<joint name="a" type="revolute"><parent link="world"/><child link="upper"/><origin xyz="0 0 0.5"/>
  <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="10"/></joint>
</robot>"""


def arm(folder: Path, base: str = "meshes/base.stl", upper: str = "meshes/upper.stl") -> Mechanism:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arm.urdf").write_text(ARM.replace("BASE", base).replace("UPPER", upper))
    return load_robot(str(folder / "arm.urdf"))


def outside(capsules: tuple[Capsule, ...], points: np.ndarray) -> float:
    """How far the farthest point is outside all capsules, in [m]."""
    gaps = []
    for one in capsules:
        along = one.end - one.start
        share = np.clip((points - one.start) @ along / max(along @ along, 1e-30), 0.0, 1.0)
        gaps.append(np.linalg.norm(points - one.start - share[:, None] * along, axis=1) - one.radius)
    return float(np.min(gaps, axis=0).max())


def volume(capsules: tuple[Capsule, ...]) -> float:
    lengths = [np.linalg.norm(one.end - one.start) for one in capsules]
    return sum(
        np.pi * one.radius**2 * (length + 4 / 3 * one.radius)
        for one, length in zip(capsules, lengths, strict=True)
    )


@pytest.mark.parametrize("kind", ["stl", "STL", "text.stl", "obj", "solid.stl"])
def test_every_format_gives_the_same_triangles(tmp_path: Path, kind: str) -> None:
    triangles = np.concatenate([box((0.25, 0.5, 1.0)), box((1.0, 1.0, 0.125), (0.5, -0.25, 2.0))])
    written = {
        "text.stl": stl_text(triangles).encode(),
        "obj": obj(triangles).encode(),
        "solid.stl": stl(triangles, b"solid of a program that writes binary files so"),
    }
    file = tmp_path / f"mesh.{kind}"
    file.write_bytes(written.get(kind, stl(triangles)))
    mesh = read_mesh(file)
    np.testing.assert_array_equal(mesh.vertices[mesh.triangles], triangles)  # exact in single precision
    assert len(mesh.vertices) == 16


def test_faces_of_an_obj_with_many_corners_are_fans(tmp_path: Path) -> None:
    file = tmp_path / "square.obj"
    file.write_text("v 0 0 0\nv 1 0 0 0.5 0.5 0.5\nv 1 1 0\nv 0 1 0\nv 9 9 9 # in no face\nf 1 2 3 4\n")
    mesh = read_mesh(file)
    assert mesh.triangles.shape == (2, 3)
    assert mesh.vertices.max() == 1.0


BAD = {
    "short.stl": (stl(box((1, 1, 1)))[:-7], "has 684 bytes, and the file has 677"),
    "huge.stl": (b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50, "4294967295 triangles"),
    "long.stl": (stl(box((1, 1, 1))) + b"x", "has 684 bytes"),
    "cut_solid.stl": (stl(box((1, 1, 1)), b"solid")[:-7], "has 684 bytes"),
    "empty.stl": (b"", "0 triangles"),
    "none.stl": (stl(box((1, 1, 1))[:0]), "no triangles"),
    "nan.stl": (stl(np.where(box((1, 1, 1)) > 0, np.nan, 0.0)), "triangle 1: .*not finite"),
    "text.stl": (b"solid a\nfacet normal 0 0 0\nouter loop\nvertex 0 0 x\n", "line 4: 'x' is not a number"),
    "word.stl": (b"solid a\nfacet normal 0 0 0\nouter lop\n", "line 3: 'lop' is not 'loop'"),
    "open.stl": (stl_text(box((1, 1, 1)))[:-20].encode(), "ends within the mesh"),
    "underscore.stl": (stl_text(box((1, 1, 1))).replace("vertex 0.5", "vertex 0_5", 1).encode(), "0_5"),
    "two.obj": (b"v 0 0\nf 1 1 1\n", "line 1: .*no three coordinates"),
    "far.obj": (b"v 0 0 0\nf 1 1 2\n", "line 2: a face names vertex '2' of 1"),
    "zero.obj": (b"v 0 0 0\nf 0 1 1\n", "vertex '0' of 1"),
    "line.obj": (b"v 0 0 0\nf 1 1\n", "fewer than three corners"),
    "curve.obj": (b"v 0 0 0\ncurv 0 1 1\n", "line 2: 'curv' is not supported"),
    "points.obj": (b"v 0 0 0\n", "no triangles"),
    "inf.obj": (b"v 0 0 1e999\nv 0 0 0\nf 1 2 2\n", "line 3: .*not finite"),
    "scene.dae": (b"<COLLADA/>", "'.dae' is not a mesh format"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_meshes_are_refused_with_their_place(tmp_path: Path, name: str) -> None:
    content, match = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match) as refused:
        read_mesh(tmp_path / name)
    assert refused.value.remedy


@pytest.mark.parametrize("name", ["mesh.stl", "text.stl", "mesh.obj"])
def test_damaged_bytes_give_a_mesh_or_a_refusal(tmp_path: Path, name: str) -> None:
    triangles = box((0.3, 0.2, 0.1))
    good = {"mesh.stl": stl(triangles), "text.stl": stl_text(triangles).encode()}.get(
        name, obj(triangles).encode()
    )
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        changed = bytearray(good)
        for place in rng.integers(0, len(good), rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        (tmp_path / name).write_bytes(
            bytes(changed[: rng.integers(1, len(good))] if rng.random() < 0.2 else changed)
        )
        try:
            mesh = read_mesh(tmp_path / name)
        except InputError:
            refused += 1
            continue
        assert np.isfinite(mesh.vertices).all()
        assert mesh.triangles.max() < len(mesh.vertices)
    assert 10 < refused < 150


def test_a_mesh_above_the_limit_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "large.stl").open("wb") as stream:
        stream.truncate(BYTE_LIMIT + 1)
    with pytest.raises(InputError, match="more than the limit"):
        read_mesh(tmp_path / "large.stl")


def test_a_text_that_would_need_much_memory_is_refused_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty lines are not kept, and a face of many corners is refused before it is divided."""
    (tmp_path / "empty.stl").write_bytes(b"solid" + b"\n" * 100_000)
    tracemalloc.start()
    with pytest.raises(InputError, match="ends within the mesh"):
        read_mesh(tmp_path / "empty.stl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6  # bytes: lists of the words of all lines would have 64 each
    monkeypatch.setattr(mesh_file, "TRIANGLE_LIMIT", 10)
    (tmp_path / "fan.obj").write_text("v 0 0 0\nf" + " 1" * 13 + "\n")
    with pytest.raises(InputError, match="more than 10 triangles") as refused:
        read_mesh(tmp_path / "fan.obj")
    assert "--no-limits" in str(refused.value)


@settings(deadline=None, max_examples=8)  # a tenth of a second each
@given(seed=some.integers(0, 10_000), bent=some.booleans(), flat=some.booleans())
def test_capsules_contain_every_point_of_any_mesh(seed: int, bent: bool, flat: bool) -> None:
    rng = np.random.default_rng(seed)
    stretch = rng.uniform(0.02, 1.0, 3) * ((1, 1, 0) if flat else (1, 1, 1))
    triangles = rng.normal(size=(rng.integers(1, 60), 3, 3)) * stretch
    if bent:
        triangles = np.concatenate([triangles, triangles[:, :, [2, 0, 1]] + [3.0, 0.0, 0.0]])
    capsules = covering(triangles)
    weights = rng.dirichlet((1.0, 1.0, 1.0), (20, len(triangles)))
    points = np.einsum("kmi,mix->kmx", weights, triangles).reshape(-1, 3)
    assert outside(capsules, np.concatenate([points, triangles.reshape(-1, 3)])) <= 0.0
    assert len(capsules) <= 4


def test_capsules_are_tight_and_follow_a_bend() -> None:
    """Best capsules known in closed form, and an L that one capsule fills badly."""
    (rod,) = covering(box((0.1, 0.1, 1.0)))
    around = Capsule(np.array([0, 0, -0.5]), np.array([0, 0, 0.5]), 0.05 * np.sqrt(2))
    assert volume((rod,)) < 1.001 * volume((around,))  # the search ends at 1e-4 of the size
    (cube,) = covering(box((1.0, 1.0, 1.0)))
    assert volume((cube,)) < 4 / 3 * np.pi * np.sqrt(0.75) ** 3 * 1.001  # of the sphere around it
    bent = np.concatenate([box((0.1, 0.1, 0.6)), box((0.6, 0.1, 0.1), (0.25, 0, 0.25))])
    parts, one = covering(bent), covering(bent, 1)
    assert volume(parts) < 0.3 * volume(one)  # measured 0.19


def test_meshes_of_a_urdf_are_placed_as_pinocchio_places_them(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    triangles = box((200.0, 100.0, 400.0), (30.0, 0.0, 200.0))
    write(tmp_path, "meshes/upper.stl", triangles)
    write(tmp_path, "meshes/base.stl", box((0.2, 0.2, 0.2)))
    robot = arm(tmp_path)
    (shape,) = robot.meshes["upper"]
    ours = shape.read().vertices
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    shapes = pin.buildGeomFromUrdf(
        model, str(tmp_path / "arm.urdf"), pin.COLLISION, package_dirs=[str(tmp_path)]
    )
    theirs = next(one for one in shapes.geometryObjects if one.name.startswith("upper"))
    points = theirs.geometry.vertices() if hasattr(theirs.geometry, "vertices") else None
    if points is None:
        points = np.unique(triangles.reshape(-1, 3), axis=0) * theirs.meshScale
    placed = points @ theirs.placement.rotation.T + theirs.placement.translation
    assert same_points(ours, placed, 1e-6)  # single precision
    assert np.ptp(ours[:, 2]) == pytest.approx(0.8)  # a mirrored axis


def same_points(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    far = np.linalg.norm(a[:, None] - b[None], axis=2)
    return bool(far.min(axis=0).max() < tolerance and far.min(axis=1).max() < tolerance)


MODEL = """<mujoco><compiler meshdir="parts" angle="radian"/>
<default><default class="shape"><geom type="mesh" group="3"/><mesh scale="0.5 0.5 2"/></default></default>
<asset><mesh name="bent" file="bent.stl" class="shape" refpos="0.1 0.2 0.3" refquat="0.5 0.1 -0.7 0.2"/>
  <mesh file="rod.obj" scale="1 -1 1"/><mesh name="written" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
<worldbody><body name="link" pos="0 0 1"><joint name="a" axis="0 0 1" range="-1 1"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <frame pos="0.2 0 0" euler="0.3 0 0.4">
    <geom class="shape" mesh="bent" pos="0.1 -0.2 0.3" quat="0.3 0.6 0.1 -0.5"/></frame>
  <geom type="mesh" mesh="rod" pos="0 0 1"/>
  <geom type="mesh" mesh="rod" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


def test_meshes_of_an_mjcf_are_placed_as_mujoco_places_them(tmp_path: Path) -> None:
    """MuJoCo moves the mesh into its inertial frame, and the geom the other way."""
    mujoco = pytest.importorskip("mujoco")
    bent = np.concatenate([box((0.1, 0.2, 0.6)), box((0.6, 0.1, 0.1), (0.25, 0, 0.25))])
    write(tmp_path, "parts/bent.stl", bent)
    (tmp_path / "parts/rod.obj").write_text(obj(box((0.1, 0.2, 0.9), (0.5, 0.4, 0.3))).replace("\\\n", ""))
    (tmp_path / "model.xml").write_text(MODEL)
    shapes = load_robot(str(tmp_path / "model.xml")).meshes["link"]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    assert len(shapes) == 2  # the third takes no part in contacts
    for geom, shape in enumerate(shapes):
        mesh = model.geom_dataid[geom]
        begin, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, model.geom_quat[geom])
        placed = model.mesh_vert[begin : begin + count] @ R.reshape(3, 3).T + model.geom_pos[geom]
        assert same_points(shape.read().vertices, placed, 1e-6)  # single precision


def test_packages_are_found_above_beside_and_under_another_name(tmp_path: Path) -> None:
    triangles = box((0.1, 0.1, 0.1))
    inner = "package://arm_description/meshes/a.stl"
    for mesh, urdf, package in (
        ("one/arm_description/meshes", "one/arm_description/urdf", False),
        ("two/arm_description/meshes", "two", False),
        ("three/meshes", "three", False),
        ("four-main/meshes", "four-main/urdf/x", True),
    ):
        write(tmp_path / mesh, "a.stl", triangles)
        if package:
            (tmp_path / "four-main/package.xml").write_text("<package/>")
        found, unread = mesh_capsules(arm(tmp_path / urdf, base=inner, upper=inner))
        assert not unread, urdf
        assert set(found) == {"base", "upper"}


def test_meshes_outside_the_package_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, "secret.stl", box((1, 1, 1)))
    with pytest.raises(InputError, match="leaves its root"):
        arm(tmp_path / "robot", base="../secret.stl")
    (tmp_path / "robot/other").mkdir()
    os.symlink(tmp_path / "secret.stl", tmp_path / "robot/other/a.stl")
    unread = mesh_capsules(arm(tmp_path / "robot", "package://other/a.stl", "package://other/a.stl"))[1]
    assert set(unread) == {"base", "upper"}


def test_a_path_that_no_file_can_have_is_refused_or_named(tmp_path: Path) -> None:
    for path in ("%00.stl", "package://arm_description/%00.stl"):
        with pytest.raises(InputError, match="leaves its root"):
            arm(tmp_path, base=path)
    unread = mesh_capsules(arm(tmp_path, "a" * 5000 + ".stl", "package://other/" + "b" * 5000))[1]
    assert set(unread) == {"base", "upper"}


def test_meshes_that_are_missing_or_damaged_stop_no_identification(tmp_path: Path) -> None:
    """Nothing is opened when a robot is loaded; the motion is checked with a slender capsule, and says so."""
    write(tmp_path, "meshes/base.stl", box((0.2, 0.2, 200.0)))
    (tmp_path / "meshes/upper.stl").write_bytes(b"damaged")
    robot = arm(tmp_path)
    assert robot.capsules == {}
    shaped = with_capsules(robot, ExciteSettings())
    assert set(shaped.unread) == {"base", "upper"}
    said = " ".join(one.text + one.remedy for one in shaped.notices())
    assert "base, upper" in said
    assert "base.stl" in said
    assert "millimetres" in said
    assert not with_capsules(robot, ExciteSettings(collisions=False)).notices()


def test_capsules_of_the_robot_file_replace_meshes(tmp_path: Path) -> None:
    write(tmp_path, "meshes/base.stl", box((0.2, 0.2, 0.2)))
    write(tmp_path, "meshes/upper.stl", box((200, 100, 400)))
    arm(tmp_path)
    text = "source: arm.urdf\n"
    (tmp_path / "arm.yaml").write_text(text)
    assert set(load_robot(str(tmp_path / "arm.yaml")).meshes) == {"base", "upper"}
    (tmp_path / "arm.yaml").write_text(
        text + "capsules: {upper: {from: [0, 0, 0], to: [0, 0, 1], radius: 0.1}}\n"
    )
    robot = load_robot(str(tmp_path / "arm.yaml"))
    assert set(with_capsules(robot, ExciteSettings()).robot.capsules) == {"upper"}
