"""One door for robots: built-in names, robot files, URDFs; and what is turned away."""

import subprocess
import sys

import pytest

from dynid.common.errors import InputError
from dynid.common.strict_yaml import read_yaml
from dynid.mechanism.load import builtin_robots, load_robot

URDF = """\
<robot name="one">
  <link name="w"/><link name="b"/>
  <joint name="j" type="continuous"><parent link="w"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>
"""


def test_files_of_every_kind(tmp_path):
    for suffix in ("urdf", "xml", "URDF"):
        file = tmp_path / f"one.{suffix}"
        file.write_text(URDF)
        assert load_robot(file).name == "one"
    file = tmp_path / "two.yml"
    file.write_text("joints: [{name: j, kind: revolute, parent: base, child: b}]")
    robot = load_robot(str(file))
    assert robot.name == "two"
    assert load_robot(robot) is robot


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("arm.xacro", "<robot/>", "run xacro first"),
        (
            "arm.urdf",
            '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:x/></robot>',
            "xacro",
        ),
        ("arm.xml", "<mujoco/>", "no <body>"),
        ("arm.xml", "<model/>", "not <robot>"),
        ("arm.sdf", "<sdf/>", "convert it to 1.11"),
        ("arm.usda", "#usda 1.0", "usd2mjcf"),
        ("arm.txt", "", "not a robot description"),
    ],
)
def test_other_formats_are_refused_with_a_remedy(tmp_path, name, text, said):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        load_robot(file)


def test_a_log_in_the_place_of_the_robot_is_refused_with_the_order():
    with pytest.raises(InputError, match="a robot cannot be made from dict") as caught:
        load_robot({"t": [0.0]})
    assert "before the log" in caught.value.remedy


def test_missing_files_and_names(tmp_path):
    (tmp_path / "puma.yaml").write_text("")
    with pytest.raises(InputError, match=r"did you mean '.*puma\.yaml'"):
        load_robot(tmp_path / "pumma.yaml")
    for name in builtin_robots():
        with pytest.raises(InputError, match="did you mean"):
            load_robot(name + "x")
        break
    with pytest.raises(InputError, match="not a robot description"):
        load_robot(tmp_path)


@pytest.mark.parametrize("name", sorted(builtin_robots()))
def test_every_built_in_robot_loads_and_can_be_built_again(name):
    robot = load_robot(name)
    assert robot.name == name
    assert read_yaml(robot.file).plain()["description"] == builtin_robots()[name]
    if robot.rebuild:
        assert robot.rebuild(robot.geometry).geometry == robot.geometry


def test_the_list_of_robots_needs_no_numpy():
    code = (
        "import sys; from dynid.mechanism.load import builtin_robots; builtin_robots();"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
