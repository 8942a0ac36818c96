"""Bad descriptions, one test per row of the fault table (rows 1 to 13)."""

import os
import tracemalloc

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.common.limits import lifted
from dynid.common.strict_yaml import parse_yaml
from dynid.mechanism.load import load_robot
from dynid.mechanism.xml_elements import read_elements
from tests.built_in import codes

ROBOT_FILE = "model.urdf"
INERTIAL = (
    '<inertial><mass value="{mass}"/>'
    '<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name, mass="1", ixx="0.1", iyy="0.1", izz="0.1", inertial=True, extra=""):
    inside = INERTIAL.format(mass=mass, ixx=ixx, iyy=iyy, izz=izz) if inertial else ""
    return f'<link name="{name}">{inside}{extra}</link>\n'


def joint(name, parent, child, kind="revolute", axis="0 0 1", extra=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{extra}</joint>\n'
    )


def robot(*parts):
    return '<robot name="r">\n' + "".join(parts) + "</robot>\n"


def two_links(**options):
    return robot(link("w", inertial=False), link("b", **options), joint("j", "w", "b"))


def refused(load, text, said, place="line"):
    with pytest.raises(InputError, match=said) as caught:
        load(text)
    assert caught.value.exit_code == 2
    assert caught.value.file.endswith("model.urdf")
    assert place in (caught.value.place or "")
    assert caught.value.remedy is not None
    return caught.value


def test_fault_01_entity_bomb(load):
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 20))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e0 "ha">{entities}]><robot name="&e19;"/>'
    tracemalloc.start()
    try:
        refused(load, bomb, "document types and entities are not allowed")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_fault_02_external_entity(load, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    for source in (f"file://{secret}", "http://127.0.0.1:1/x"):
        text = f'<!DOCTYPE r [<!ENTITY x SYSTEM "{source}">]><robot name="r">&x;</robot>'
        refused(load, text, "entities are not allowed")
    refused(load, '<!DOCTYPE r SYSTEM "http://127.0.0.1:1/r.dtd"><robot/>', "entities are not allowed")


def test_fault_03_truncated_xml(load):
    error = refused(load, two_links()[:-40], "not valid XML")
    assert "column" in error.place
    refused(load, "", "not valid XML")


@pytest.mark.parametrize(
    "path",
    [
        "package://arm/../../etc/passwd",
        "package://../x.stl",
        "../../outside.stl",
        "/etc/passwd",
        "file:///etc/passwd",
        "meshes/link/x.stl",
        "package://arm/meshes/%2e%2e/%2e%2e/x.stl",
    ],
)
def test_fault_04_mesh_path_that_leaves_its_root(load, tmp_path, path):
    (tmp_path / "meshes").mkdir()
    os.symlink("/usr", tmp_path / "meshes" / "link")
    visual = f'<visual><geometry><mesh filename="{path}"/></geometry></visual>'
    refused(load, two_links(extra=visual), "leaves its root")


@pytest.mark.parametrize(
    "path",
    ["package://arm/meshes/a.stl", "package:///arm/meshes/a.stl", "meshes/missing.stl", "meshes/../a.stl"],
)
def test_fault_04_mesh_paths_inside_are_never_opened(load, path):
    visual = f'<collision><geometry><mesh filename="{path}"/></geometry></collision>'
    assert codes(load(two_links(extra=visual))) == []


def chain(n):
    return robot(link("l0"), *(link(f"l{i}") + joint(f"j{i}", f"l{i - 1}", f"l{i}") for i in range(1, n)))


def test_fault_05_huge_model(load, tmp_path):
    assert len(load(chain(1000)).joints) == 999
    error = refused(load, chain(5000), "more than 1000 <link>")
    assert "--no-limits" in error.remedy
    refused(load, "<a>" * 2000, "nested deeper")
    with pytest.raises(InputError, match="limit of 100"):
        read_elements(tmp_path / "model.urdf", 100)


def test_fault_05_huge_model_with_override(load):
    with lifted():
        assert len(load(chain(5000)).joints) == 4999


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "1,5", "", "1_0", "0x1", "one", "\u0661"])
def test_fault_06_numbers_that_are_none(load, value):
    error = refused(load, two_links(mass=value), "mass|value", place="line 3")
    if value:
        assert "link 'b'" in error.text
    refused(load, two_links(iyy=value), "iyy", place="line 3")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mass": "-1"}, "negative"),
        ({"ixx": "-0.1"}, "positive definite"),
        ({"ixx": "1"}, "triangle"),
        ({"mass": "0"}, "no mass"),
    ],
)
def test_fault_07_impossible_prior(load, options, said):
    mechanism = load(two_links(**options))
    (notice,) = mechanism.notices
    assert notice.code == "impossible-prior"
    assert "link 'b'" in notice.text
    assert "line 3" in notice.text
    assert said in notice.text
    assert mechanism.bodies["b"].prior == {}
    assert len(mechanism.bodies["b"].parameters) == 10


def test_fault_08_missing_inertial_is_unknown(load):
    mechanism = load(two_links(inertial=False))
    assert codes(mechanism) == ["missing-inertial"]
    assert "b" in mechanism.notices[0].text
    assert mechanism.bodies["b"].prior == {}
    assert len(mechanism.bodies["b"].parameters) == 10


def test_fault_09_duplicate_names(load):
    refused(load, robot(link("a"), link("a")), "link name 'a' occurs twice", place="line 3")
    twice = robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c"))
    refused(load, twice, "joint name 'j' occurs twice", place="line 6")


def test_fault_10_not_a_tree(load):
    a, b, c = link("a"), link("b"), link("c")
    second = robot(a, b, c, joint("j1", "a", "b"), joint("j2", "a", "c"), joint("j3", "b", "c"))
    error = refused(load, second, "link 'c' has two parents: joints 'j2' and 'j3'", place="line 7")
    assert "loops:" in error.remedy
    closure = parse_yaml(error.remedy.split("robot file over this URDF:\n")[1]).plain()
    assert closure["loops"][0]["a"]["body"] == "b"
    assert closure["loops"][0]["b"]["body"] == "c"
    assert closure["loops"][0]["kind"] == "revolute"
    assert len(closure["loops"][0]["axis"]) == 3  # always written: URDF's default is x, a loop's is z
    circle = robot(a, b, c, joint("j1", "b", "c"), joint("j2", "c", "b"))
    refused(load, circle, "cycle")
    refused(load, robot(b, c, joint("j1", "b", "c"), joint("j2", "c", "b")), "cycle")
    refused(load, robot(a, b, c, joint("j1", "a", "b")), "2 links have no parent: a, c")
    refused(load, robot(a, b, joint("j1", "a", "bb")), "link 'bb', which is missing")
    refused(load, robot(), "no <link>")


def test_fault_11_axes_limits_mimics(load):
    a, b, c = link("a", inertial=False), link("b"), link("c")
    refused(load, robot(a, b, joint("j", "a", "b", axis="0 0 0")), "zero axis", place="line 4")
    mechanism = load(robot(a, b, joint("j", "a", "b", axis="0 3 4")))
    assert codes(mechanism) == ["normalised-axis"]
    np.testing.assert_allclose(mechanism.joints[0].axes[0], [0, 0.6, 0.8], rtol=1e-15)  # one division
    swapped = joint("j", "a", "b", extra='<limit lower="1" upper="-1" effort="1" velocity="1"/>')
    refused(load, robot(a, b, swapped), "lower limit 1 is above", place="line 4")
    circle = robot(
        a, b, c,
        joint("j", "a", "b", extra='<mimic joint="k"/>'),
        joint("k", "b", "c", extra='<mimic joint="j"/>'),
    )  # fmt: skip
    refused(load, circle, "j -> k -> j")
    refused(load, robot(a, b, joint("j", "a", "b", extra='<mimic joint="x"/>')), "not a movable joint")


def test_fault_12_elements_of_other_name_spaces_are_reported(load):
    included = two_links(extra='<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="x.urdf"/>')
    mechanism = load(included)
    assert codes(mechanism) == ["unknown-element"]
    assert "XInclude}include> of another namespace in <link> is not supported" in mechanism.notices[0].text


def test_fault_12_unknown_elements_and_keys(load, tmp_path):
    typo = (
        two_links(extra="<inertal/>")
        .replace("<axis xyz", "<axes/><axis xyz")
        .replace("<parent ", '<parent x="" ')
    )
    mechanism = load(typo)
    assert codes(mechanism) == ["unknown-element"] * 3
    assert "did you mean 'inertial'" in mechanism.notices[0].text
    assert "did you mean 'axis'" in " ".join(notice.text for notice in mechanism.notices)
    # A name that resembles none is an extension of another program: good to know, no reason for care.
    levels = {"'x'" in notice.text: notice.level for notice in mechanism.notices}
    assert levels == {False: "care", True: "good"}
    file = tmp_path / "robot.yaml"
    file.write_text("joints:\n  - {name: j, knd: revolute, parent: base, child: b}\n")
    with pytest.raises(InputError, match="unknown key 'knd'; did you mean 'kind'") as caught:
        load_robot(file)
    assert caught.value.place == "line 2, joints[0].knd"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: !!python/object/apply:os.system ['true']", "tag"),
        ("name: a\nname: b", "given twice"),
        ("gravity: [0, 0, .nan]", "not a finite number"),
        (
            "a0: &a0 [1]\n" + "\n".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]" for i in range(1, 12)),
            "100000 entries",
        ),
    ],
)
def test_fault_13_hostile_yaml(tmp_path, text, said):
    file = tmp_path / "robot.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        load_robot(file)
    assert "line" in caught.value.place


def test_fault_13_scientific_notation_is_a_number(tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text("joints: [{name: j, kind: revolute, parent: base, child: b, mdh: {d: 1e-3}}]")
    assert load_robot(file).joints[0].placement.p[0] == 1e-3


@pytest.mark.parametrize("name", ["robot.yaml", "robot.urdf"])
def test_robot_without_joints_is_refused(tmp_path, name):
    file = tmp_path / name
    file.write_text("joints: []\n" if name.endswith("yaml") else "<robot name='r'><link name='a'/></robot>")
    with pytest.raises(InputError, match="no joint"):
        load_robot(file)


def test_fault_7_impossible_values_of_a_robot_file(tmp_path):
    file = tmp_path / "robot.yaml"
    joint = "joints: [{name: j, kind: revolute, parent: base, child: b}]\n"
    file.write_text(joint + "bodies: {b: {prior: {M: -1, ZZ: 0.1}}}\n")
    mechanism = load_robot(file)
    assert codes(mechanism) == ["impossible-prior"]
    assert not mechanism.bodies["b"].prior
    file.write_text(joint + "bodies: {b: {known: {M: 1, ZZ: -0.1}}}\n")
    with pytest.raises(InputError, match=r"ZZ -0\.1 is negative") as caught:
        load_robot(file)
    assert caught.value.place == "line 2, bodies.b.known"


@pytest.mark.parametrize("key", ["mdh: {alpha: 1e308}", "mdh: {d: 1e200}", "xyz: [0, 0, 10^99]"])
def test_absurdly_large_numbers_are_refused(tmp_path, key):
    file = tmp_path / "robot.yaml"
    file.write_text(f"joints: [{{name: j, kind: revolute, parent: base, child: b, {key}}}]")
    with pytest.raises(InputError, match="too large") as caught:
        load_robot(file)
    assert "line 1, joints[0]" in caught.value.place


def test_absurdly_large_numbers_of_a_urdf_are_refused(load):
    with pytest.raises(InputError, match="too large"):
        load(two_links().replace("<parent ", '<origin xyz="0 0 1e200"/><parent '))
