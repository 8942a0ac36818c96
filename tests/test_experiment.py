"""The experiment file, and the same experiment made in Python."""

import math

import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import (
    ColumnMap,
    Experiment,
    FilterSettings,
    LogEntry,
    MaskSettings,
    TieChoice,
    UncertaintySettings,
    experiment_from,
    read_experiment,
)
from dynid.experiment.sections import EnergySettings, InternalSettings
from dynid.motion.settings import WrenchSettings
from dynid.statistics.essential import EssentialRule

FULL = """\
schema: dynid.experiment/1
robot: dualv
model: power
logs:
  - file: unloaded.parquet
  - {file: loaded.parquet, payload: payload, columns: {t: time}}
validate:
  - {file: other.parquet, payload: [payload, ballast]}
columns:
  q_1: axis1_pos
  q_2: {name: axis2_pos, unit: deg, scale: -1, offset: -pi/2}
  tau_1: {scale: 13.6}
efforts: [1, 2, joint_5]
filter: {cutoff: 60, decimate: 20, rows: 40, kind: fir, order: 2, derivative: central5, velocity: measured}
mask: {speed: 0.02, around: 10, rest: 5e-2}
estimator: wls
uncertainty: {method: bootstrap, block: 1/2, draws: 400, seed: 3}
ties: [legs, {name: proximals, apply: regrouped}]
essential: {ratio: 10}
keep: [M_platform, "Ia_*"]
energy: {window: 0.1, overlap: true}
internal: {free: [x, y], nullspace: orthonormal, lengths: given}
wrench: {parameters: full}
payloads: {ballast: {body: platform, known: {M: 2.5, com: [0.1, 0, 0.05]}}}
angles: zyx
out: results/here
"""


@pytest.fixture
def read(tmp_path):
    def write_and_read(text):
        file = tmp_path / "run.yaml"
        file.write_text(text)
        return read_experiment(file)

    return write_and_read


def test_every_section(read, tmp_path):
    run = read(FULL)
    assert run.robot == "dualv"
    assert run.model == "power"
    assert run.logs == (
        LogEntry(str(tmp_path / "unloaded.parquet")),
        LogEntry(str(tmp_path / "loaded.parquet"), ("payload",), {"t": ColumnMap("time")}),
    )
    assert run.validate[0].payloads == ("payload", "ballast")
    assert run.columns == {
        "q_1": ColumnMap("axis1_pos"),
        "q_2": ColumnMap("axis2_pos", "deg", -1.0, -math.pi / 2),
        "tau_1": ColumnMap("tau_1", None, 13.6),
    }
    assert run.efforts == (1, 2, "joint_5")
    assert run.filter == FilterSettings(60.0, 20, 40.0, "fir", 2, "central5", "measured")
    assert run.mask == MaskSettings(speed=0.02, around=10, rest=0.05)
    assert run.ties == (TieChoice("legs"), TieChoice("proximals", "regrouped"))
    assert run.essential == EssentialRule(ratio=10)
    assert run.keep == ("M_platform", "Ia_*")
    assert run.energy == EnergySettings(window=0.1, overlap=True)
    assert run.internal == InternalSettings(("x", "y"), "orthonormal", "given")
    assert run.wrench == WrenchSettings(parameters="full")
    assert run.payloads["ballast"].known == {"MX": 0.25, "MY": 0, "MZ": 0.125, "M": 2.5}
    assert run.angles == "zyx"
    assert run.out == str(tmp_path / "results/here")
    assert run.name == "run"


def test_defaults(read, tmp_path):
    run = read("robot: arms/arm.urdf\nlogs: [a.csv]\n")
    assert run.robot == str(tmp_path / "arms/arm.urdf")
    assert run.logs == (LogEntry(str(tmp_path / "a.csv")),)
    assert run.model is None
    assert run.estimator == "wls"
    assert run.filter == FilterSettings()
    assert run.mask == MaskSettings()
    assert run.efforts is None
    assert run.essential is None
    assert run.keep is None
    assert run.out is None


def test_made_in_python():
    run = Experiment(robot="serial6", logs=(LogEntry("a.csv"), "b.csv"), model="inverse", estimator="ols")
    assert run.logs == (LogEntry("a.csv"), LogEntry("b.csv"))
    with pytest.raises(InputError, match="did you mean 'ols'"):
        Experiment(robot="serial6", estimator="olss")
    with pytest.raises(InputError, match="not positive"):
        FilterSettings(cutoff=-1.0)
    with pytest.raises(InputError, match="negative"):
        MaskSettings(speed=-1.0)


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("robot: r\nlogs: [a.csv]\nestimater: ols", "did you mean 'estimator'", "line 3, estimater"),
        ("robot: r\nlogs: [a.csv]\nestimator: lms", "'lms' is not known", "line 3"),
        ("robot: r\nlogs: [a.csv]\nmodel: forward", "'forward' is not known", "line 3"),
        ("robot: r\nlogs: []", "no log", "line 2"),
        ("robot: r", "'logs' is missing", "line 1"),
        ("logs: [a]", "'robot' is missing", "line 1"),
        ("robot: r\nlogs: [{fille: a}]", "did you mean 'file'", "line 2"),
        ("robot: r\nlogs: [a]\nfilter: {cutof: 3}", "did you mean 'cutoff'", "line 3, filter.cutof"),
        ("robot: r\nlogs: [a]\nfilter: {cutoff: 0}", "not positive", "line 3, filter"),
        ("robot: r\nlogs: [a]\nuncertainty: hca", "did you mean 'hac'", "line 3, uncertainty"),
        ("robot: r\nlogs: [a]\nuncertainty: {method: hac, block: 1}", "has no block", "line 3, uncertainty"),
        ("robot: r\nlogs: [a]\nfilter: {decimate: 2.5}", "integer", "line 3, filter.decimate"),
        ("robot: r\nlogs: [a]\nfilter: {kind: bessel}", "not known", "line 3"),
        ("robot: r\nlogs: [a]\nmask: {speed: -1}", "negative", "line 3"),
        ("robot: r\nlogs: [a]\nefforts: [0]", "at least 1", "line 3"),
        ("robot: r\nlogs: [a]\nefforts: [1, 1]", "twice", "line 3"),
        ("robot: r\nlogs: [a]\ncolumns: {q_1: x, q_2: x}", "used for q_1 and q_2", "line 3"),
        ("robot: r\nlogs: [a]\ncolumns: {q_1: {nam: x}}", "did you mean 'name'", "line 3"),
        ("robot: r\nlogs: [a]\ncolumns: {q_1: {scale: 0}}", "makes the column zero", "line 3"),
        ("robot: r\nlogs: [a]\nessential: {ratio: 10, sigma_percent: 5}", "one rule", "line 3"),
        ("robot: r\nlogs: [a]\nangles: yxz", "not known", "line 3"),
        ("robot: r\nlogs: [a]\nties: [{name: a, apply: both}]", "not known", "line 3"),
        ("robot: r\nlogs: [a]\nstandard: {mass: -3}", "not positive", "line 3, standard.mass.total"),
        ("robot: r\nlogs: [a]\nrefine: maybe", "true or false", "line 3, refine"),
        ("robot: r\nlogs: [a]\nkeep: [b]\nrefine: true", "cannot be combined", "line 3, keep"),
        ("robot: r\nlogs: [a]\nestimator: {name: wls, weihgts: joint}", "'weights'", "line 3, estimator"),
        ("- 1", "expected named entries", "line 1"),
        ("robot: r\nlogs: [a]\nsource: arm.urdf", "unknown key 'source'", "line 3, source"),
    ],
)
def test_refusals_name_the_line(read, text, said, place):
    with pytest.raises(InputError, match=said) as caught:
        read(text)
    assert place in caught.value.place


def test_a_log_in_place_of_an_experiment_is_not_printed_whole(read):
    with pytest.raises(InputError, match="found 't,q_1,tau_1 0,1,2") as caught:
        read("t,q_1,tau_1\n" + "0,1,2\n" * 1000)
    assert len(caught.value.text) < 200
    assert "--log" in caught.value.remedy


def test_plain_mappings_and_names_are_taken_as_in_a_file():
    options = {"filter": {"cutoff": 20.0}, "mask": {"speed": 0.1}, "ties": ["legs"]}
    for made in (experiment_from({"robot": "dualv", **options}), Experiment(robot="dualv", **options)):
        assert made.filter == FilterSettings(cutoff=20.0)
        assert made.mask == MaskSettings(speed=0.1)
        assert made.ties == (TieChoice("legs"),)
    with pytest.raises(InputError, match="filter has no 'cutof'; did you mean 'cutoff'"):
        experiment_from({"robot": "r", "filter": {"cutof": 20.0}})
    with pytest.raises(InputError, match="an experiment has no 'modle'; did you mean 'model'"):
        experiment_from({"robot": "r", "modle": "inverse"})
    with pytest.raises(InputError, match="essential has no 'ration'"):
        Experiment(robot="serial6", essential={"ration": 10})


def test_uncertainty_by_name_or_with_options(read):
    assert read(FULL).uncertainty == UncertaintySettings("bootstrap", block=0.5, draws=400, seed=3)
    assert read("robot: r\nlogs: [a]\nuncertainty: classical").uncertainty.method == "classical"
    assert read("robot: r\nlogs: [a]").uncertainty == UncertaintySettings("cluster")
    for plain in ("hac", {"method": "hac"}):
        assert Experiment(robot="r", uncertainty=plain).uncertainty == UncertaintySettings("hac")
    with pytest.raises(InputError, match="did you mean 'block'"):
        experiment_from({"robot": "r", "uncertainty": {"method": "cluster", "blok": 1.0}})


def test_a_robot_in_place_of_an_experiment_file_is_named() -> None:
    with pytest.raises(InputError, match="this is a robot") as refused:
        read_experiment("ur5")
    assert "dynid identify --robot ur5 --log LOG" in refused.value.message
