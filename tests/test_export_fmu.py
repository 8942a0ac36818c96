"""FMU: its functions give the efforts of the estimate, its description is valid, whatever the names are."""

from __future__ import annotations

import ctypes
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from defusedxml import ElementTree

from dynid.exporters.code import compiled as compiling
from dynid.exporters.code import export_fmu
from dynid.exporters.code.compiled import compiled
from tests.built_in import robot_of
from tests.test_export_code import (
    CAREFUL,
    HOSTILE,
    assert_same,
    needs_compiler,
    pendulum,
    pendulum_values,
    predicted,
    sparse,
)
from tests.test_predict import exact, inverse_efforts


def library(file: Path, folder: Path) -> tuple[ctypes.CDLL, dict[str, str]]:
    """The sources, compiled with all warnings as errors, and the attributes of the description."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    sources = [
        folder / "sources" / one.get("name")
        for one in ElementTree.parse(folder / "sources" / "buildDescription.xml").iter("SourceFile")
    ]
    compiled(sources, folder / "strict.so", CAREFUL)
    return ctypes.CDLL(str(folder / "strict.so")), dict(
        ElementTree.parse(folder / "modelDescription.xml").getroot().attrib
    )


@needs_compiler
@pytest.mark.parametrize("name", ["scara", "fivebar"])
def test_functions_of_an_fmu_give_the_efforts(name: str, tmp_path: Path) -> None:
    robot = robot_of(name)
    made = export_fmu(exact(name), robot, tmp_path)
    states = sparse(name)
    assert_same(made.read_back()(*states[1:]), predicted(exact(name), robot, states))
    before = made.files[0].read_bytes()
    assert export_fmu(exact(name), robot, tmp_path).files[0].read_bytes() == before


@needs_compiler
def test_a_master_steps_through_a_closed_robot(tmp_path: Path) -> None:
    """Start values close the loops, time advances, a pose that does not exist is discarded."""
    robot = robot_of("fivebar")
    fmu, about = library(export_fmu(exact("fivebar"), robot, tmp_path).files[0], tmp_path / "x")
    fmu.fmi3GetVersion.restype = ctypes.c_char_p
    assert fmu.fmi3GetVersion() == about["fmiVersion"].encode() == b"3.0"
    make = fmu.fmi3InstantiateCoSimulation
    make.restype = ctypes.c_void_p
    assert make(b"one", b"another model", *[None] * 10) is None
    one = ctypes.c_void_p(make(b"one", about["instantiationToken"].encode(), *[None] * 10))
    values, references = (ctypes.c_double * 2)(), (ctypes.c_uint32 * 1)(4)
    two, single = ctypes.c_size_t(2), ctypes.c_size_t(1)
    assert fmu.fmi3EnterInitializationMode(one, False, ctypes.c_double(), ctypes.c_double(1.0), False) == 0
    assert fmu.fmi3ExitInitializationMode(one) == 0
    assert fmu.fmi3GetFloat64(one, references, single, values, two) == 0
    assert np.isfinite(list(values)).all()
    flags, reached = [(ctypes.c_bool * 1)(True) for _ in range(3)], ctypes.c_double()
    step = (ctypes.c_double(1.0), ctypes.c_double(0.25), True)
    assert fmu.fmi3DoStep(one, *step, *flags, ctypes.byref(reached)) == 0
    assert reached.value == 1.25
    assert not any(flag[0] for flag in flags)
    assert fmu.fmi3SetFloat64(one, references, single, values, two) == 3  # an output
    references[0] = 1
    far = (ctypes.c_double * 2)(np.nan, 0.0)
    assert fmu.fmi3SetFloat64(one, references, single, far, two) == 0
    assert fmu.fmi3SetFloat64(one, references, single, far, single) == 3  # an array of two
    references[0] = 4
    assert fmu.fmi3GetFloat64(one, references, single, values, two) == 2  # the loops do not close
    references[0] = 0
    assert fmu.fmi3GetFloat64(one, references, single, values, two) == 0
    assert values[0] == 1.25
    assert fmu.fmi3GetInt32(one) == 3  # there are no such variables
    fmu.fmi3FreeInstance(one)


@needs_compiler
def test_hostile_names_stay_texts(tmp_path: Path) -> None:
    (robot, known), (plain, _) = pendulum(HOSTILE), pendulum("pendulum")
    verdict = replace(known.verdict, headline=HOSTILE)
    made = export_fmu(replace(known, verdict=verdict), robot, tmp_path)
    states = np.linspace(-1.0, 1.0, 12).reshape(3, 4, 1)
    assert_same(made.read_back()(*states), inverse_efforts(plain, pendulum_values(), *states))
    _, about = library(made.files[0], tmp_path / "x")
    assert "script" in about["modelName"]


def test_without_a_compiler_the_sources_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    made = export_fmu(exact("scara"), robot_of("scara"), tmp_path)
    with zipfile.ZipFile(made.files[0]) as archive:
        assert not any(name.startswith("binaries") for name in archive.namelist())
