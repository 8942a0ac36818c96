"""Units of columns: each has that of its joint, in one family too; those of another dimension are refused."""

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.motion.columns import matched
from dynid.motion.logs import read_log
from dynid.motion.settings import ColumnMap, DriveSettings
from dynid.motion.slots import slots
from dynid.motion.table import Table
from dynid.studio.mapping import Columns, remapped
from tests.arms import write_csv

PLAIN = ("t", *(f"{kind}_{k}" for kind in ("q", "dq", "tau") for k in (1, 2, 3, 4)))


def match(headers=None, columns=None, drives=None, robot="scara"):
    """Columns of the scara, whose third joint slides, with other headers."""
    names = [(headers or {}).get(name, name) for name in PLAIN]
    table = Table({name: np.array([float(k)]) for k, name in enumerate(names)})
    return matched(table, slots(load_robot(robot)), columns or {}, "log.csv", drives)


WRONG = {
    "q_3": ("deg", "rev", "Nm", "s"),
    "q_1": ("mm", "rad/s", "A"),
    "dq_3": ("rpm", "deg/s", "m"),
    "dq_1": ("mm/s", "rad"),
    "tau_1": ("rad", "N", "mm"),
    "tau_3": ("Nm", "rad"),
    "t": ("m", "rad"),
}


@pytest.mark.parametrize(("key", "unit"), [(key, unit) for key, units in WRONG.items() for unit in units])
def test_a_unit_of_another_dimension_is_refused(key, unit):
    """As an option, in a header, in the header of a mapped column; also where a sign or factor is given."""
    ways = [
        ({}, {key: ColumnMap(key, unit)}),
        ({}, {key: ColumnMap(key, unit, -1.0)}),
        ({key: "other"}, {key: ColumnMap("other", unit, 0.5)}),
        ({key: f"{key} [{unit}]"}, {}),
        ({key: f"x [{unit}]"}, {key: f"x [{unit}]"}),
        ({key: f"x [{unit}]"}, {key: f"x[{unit}]*2"}),
        ({key: f"{key} [{unit}]"}, {key: ColumnMap(key, None, -1.0)}),
    ]
    for headers, columns in ways:
        with pytest.raises(InputError, match=f"the unit '{unit}' does not fit") as refused:
            match(headers, columns)
        assert refused.value.file == "log.csv"
        assert refused.value.place.startswith("column '")
        assert f"{{{key}: {{name: '" in refused.value.remedy


def test_the_remedy_is_accepted():
    headers = {"q_3": "q_3 [deg]"}
    found = match(headers, {"q_3": ColumnMap("q_3 [deg]", "m")})
    assert found.chosen["q_3"] == ColumnMap("q_3 [deg]", "m")
    found = match(headers, {"q_3": ColumnMap("q_3 [deg]", None, 2e-5)})  # m per degree of a spindle
    assert found.chosen["q_3"] == ColumnMap("q_3 [deg]", None, 2e-5)


def test_a_geared_motor_may_turn_where_its_joint_slides():
    columns = {"q_3": ColumnMap("q_3", "deg"), "tau_3": ColumnMap("tau_3", "mNm")}
    assert match({}, columns, {"quill": DriveSettings(ratio=300.0)}).chosen["q_3"].scale == 1.0 / 300.0
    joint_side = DriveSettings(ratio=300.0, encoder="joint")
    for drive in (DriveSettings(torque_constant=0.1), joint_side):
        with pytest.raises(InputError, match="the unit 'deg' does not fit"):
            match({}, columns, {"quill": drive})


@pytest.mark.parametrize("key", ["tau_1", "tau_3"])
def test_efforts_may_be_currents_or_without_unit(key):
    for column in (ColumnMap(key, "A", 12.4), ColumnMap(key, "mA"), ColumnMap(key, "1"), ColumnMap(key)):
        assert match({}, {key: column}).chosen[key] == column
    assert match({key: f"{key} [A]"}).chosen[key].unit == "A"


UNITS = {
    1: ("rad", "rad/s", "Nm"),
    2: ("deg", "rpm", "N m"),
    3: ("mm", "cm/s", "N"),
    4: ("rad", "rad/s", "mNm"),
}


@pytest.mark.parametrize("pattern", ["{}_{} [{}]", "{}{} ({})", "arm/{}_{}[{}]"])
def test_every_column_of_a_family_has_its_own_unit(pattern):
    headers = {
        f"{kind}_{k}": pattern.format(kind, k, unit)
        for k, units in UNITS.items()
        for kind, unit in zip(("q", "dq", "tau"), units, strict=True)
    }
    found = match(headers)
    assert {key: column.name for key, column in found.chosen.items()} == {"t": "t", **headers}
    units = [found.chosen[f"{kind}_{k}"].unit for k in UNITS for kind in ("q", "dq", "tau")]
    assert units == [unit.replace(" ", "") for one in UNITS.values() for unit in one]
    assert {guess.key for guess in found.guesses} == set(headers)  # units that are applied are shown


def test_units_as_words_may_differ_in_a_family():
    headers = {f"q_{k}": f"pos_{k}_{unit}" for k, unit in enumerate(("rad", "rad", "mm", "deg"), 1)}
    chosen = match(headers).chosen
    assert [chosen[f"q_{k}"].unit for k in (1, 2, 3, 4)] == ["rad", "rad", "mm", "deg"]
    headers["q_3"] = "pos_3_deg"
    with pytest.raises(InputError, match="the unit 'deg' does not fit"):
        match(headers)


def test_one_unit_among_canonical_names_is_read():
    assert match({"q_3": "q_3 [mm]"}).chosen["q_3"] == ColumnMap("q_3 [mm]", "mm")
    assert match({"tau_3": "tau_quill [kN]"}).chosen["tau_3"] == ColumnMap("tau_quill [kN]", "kN")
    assert match({"dq_1": "q_1 [deg]"}).chosen["q_1"] == ColumnMap("q_1")  # the canonical name wins
    with pytest.raises(InputError, match="the unit 'furlong' of the position of 'quill' is not known"):
        match({"q_3": "q_3 [furlong]"})
    with pytest.raises(InputError, match=r"'q_3 \[m\]' and 'q_3 \[mm\]' both match"):
        match({"q_3": "q_3 [m]", "dq_3": "q_3 [mm]"})


def test_names_with_units_may_be_numbered_from_zero():
    headers = {f"q_{k}": f"q_{k - 1} [{unit}]" for k, unit in enumerate(("deg", "deg", "mm", "deg"), 1)}
    headers |= {f"{kind}_{k}": f"{kind}_{k - 1}" for kind in ("dq", "tau") for k in (1, 2, 3, 4)}
    assert [match(headers).chosen[f"q_{k}"].name for k in (1, 2, 3, 4)] == [
        headers[f"q_{k}"] for k in (1, 2, 3, 4)
    ]


def test_a_name_with_the_unit_of_another_joint_is_no_signal_of_this_one():
    names = {"q_1": "shoulder_pos", "q_2": "elbow_pos", "q_3": "quill_pos_deg", "q_4": "wrist_pos"}
    assert "q_3" not in match(names).chosen
    with pytest.raises(InputError, match="the unit 'deg' does not fit"):
        match(names, {"q_3": "quill_pos_deg"})


def test_a_mapped_column_may_be_named_without_the_unit_of_its_header():
    headers = {"q_1": "axis [deg]"}
    assert match(headers, {"q_1": "axis"}).chosen["q_1"] == ColumnMap("axis [deg]", "deg")
    assert match(headers, {"q_1": ColumnMap("axis", "rad")}).chosen["q_1"] == ColumnMap("axis [deg]", "rad")
    assert match(headers, {"q_1": ColumnMap("axis", None, 2.0)}).chosen["q_1"] == ColumnMap(
        "axis [deg]", None, 2.0
    )


def test_the_studio_gives_no_joint_the_unit_of_another_kind():
    names = ("t", "Axis1", "Axis2", "Axis3 [mm]", "Axis3", "Axis4")
    asked = Experiment(robot="scara")
    found = remapped(load_robot("scara"), Columns(names), asked, "q_1", ColumnMap("Axis1", "deg")).columns
    assert [found[f"q_{k}"].unit for k in (1, 2, 3, 4)] == ["deg", "deg", None, "deg"]


def test_poses_tables_and_sensors_have_units_too():
    known = {slot.key: slot.units[:1] for slot in slots(load_robot("cable4"))}
    assert known["q_1"] == ("m",)
    assert known["q_4"] == known["segment"] == ()  # entries of a quaternion, and numbers
    assert known["pose_roll"] == ("rad",)
    assert known["tau_1"] == ("N",)


@pytest.mark.parametrize(("headers", "unit"), [({"q_1": "q_1 [mm]"}, "mm"), ({"tau_1": "tau_1 [m]"}, "m")])
def test_files_and_the_doctor_name_the_unit(headers, unit, tmp_path):
    n = np.arange(400)
    columns = {headers.get(name, name): np.sin(0.1 * n) for name in ("q_1", "q_2", "tau_1", "tau_2")}
    file = write_csv(tmp_path / "log.csv", {"t": 0.01 * n, **columns})
    with pytest.raises(InputError, match=f"the unit '{unit}' does not fit") as refused:
        read_log(file, "fivebar")
    assert refused.value.file == str(file)
    out = CliRunner().invoke(main, ["check", "fivebar", str(file), "--out", str(tmp_path / "out")])
    assert f"unit '{unit}' does not fit" in " ".join(out.output.split())
