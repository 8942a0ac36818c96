"""The log doctor: faults are found and named, clean logs are left alone, refusals can be overridden."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import dynid as package
from dynid.common.catalogue import Severity
from dynid.common.errors import InputError
from dynid.common.notices import doubt, eased, forced, gathered, notice
from dynid.doctor.diagnosis import Diagnosis, Finding, finding_of, refusal, worst_first
from dynid.doctor.document import diagnosis_html, print_diagnosis
from dynid.doctor.examine import check, excitation_notices
from dynid.motion.log import Log
from tests.arms import arm
from tests.workspace import dynid


def columns(file: str = "log.csv") -> dict[str, np.ndarray]:
    names = Path(file).read_text(encoding="utf-8").splitlines()[0].split(",")
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    return {name: values[:, i].copy() for i, name in enumerate(names)}


def write(file: str, made: dict[str, np.ndarray]) -> None:
    np.savetxt(
        file,
        np.column_stack(list(made.values())),
        delimiter=",",
        header=",".join(made),
        comments="",
        fmt="%.12g",
    )


def loud(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != Severity.NOTE]


def test_a_clean_log_is_left_alone(here: Path) -> None:
    found = package.check("arm.yaml", "log.csv")
    assert loud(found) == []
    assert not found.refused
    assert found.excitation is not None
    assert found.excitation.seen == found.excitation.base == 12
    noise = {one.name: one for one in found.channels}
    # The simulation adds 0.05 N m of white noise, and rounds angles to 1e-5 rad (uniform error, / sqrt 12).
    assert noise["tau_1"].noise == pytest.approx(0.05, rel=0.2)
    assert noise["q_1"].noise < 1e-5
    assert found.recordings[0].rate == pytest.approx(200.0)


def test_what_is_wrong_stands_before_what_it_causes() -> None:
    """A finding about one joint names what to correct; that the model does not fit follows from it."""
    joint = {"joint": "elbow", "shown": "20 degrees", "size": 0.3, "number": 3}
    found = [
        finding_of(eased(notice("not-physical", rms=5.0, count=12)), ()),
        finding_of(notice("model-misfit", "gravity"), ()),
        finding_of(notice("zero-offset", **joint), ()),
        finding_of(notice("gap", count=1, limit=1.0, longest=2.0, jump=""), ()),
    ]
    assert [one.code for one in worst_first(found)][:2] == ["zero-offset", "model-misfit"]


def test_wrong_channels_come_first_and_consequences_last_even_if_they_are_worse() -> None:
    joint = {"joint": "a", "shown": "5 degrees", "size": 0.1, "number": 1}
    entries = [
        finding_of(replace(notice("not-physical", rms=5.0, count=12), severity=Severity.STOP), ()),
        finding_of(notice("zero-offset", **joint), ()),
        finding_of(notice("effort-absent", names="b"), ()),
    ]
    ordered = worst_first(entries)
    assert [item.code for item in ordered] == ["effort-absent", "zero-offset", "not-physical"]
    assert [item.consequence for item in ordered] == [False, False, True]
    assert Diagnosis("arm", ordered).worst is Severity.STOP
    unit = notice("angles-large", shown="a sweeps 57 rad", columns="q_1", number=1, name="NAME")
    lost = refusal(InputError("no samples are left"))
    assert [item.code for item in worst_first([lost, finding_of(unit, ())])] == ["angles-large", "refused"]


def test_the_printed_findings_use_the_width_and_name_each_fact_once() -> None:
    texts = gathered(
        [notice("friction-speed", joint=name, percent=p, entry="") for name, p in (("a", 28), ("b", 9))]
    )
    (text,) = [item.text for item in texts]
    assert text.endswith("better friction terms reduce its rms by 28 %; likewise 'b' (9 %)")
    found = worst_first(
        [finding_of(item, ("a", "b")) for item in (*texts, notice("not-physical", rms=5.0, count=12))]
    )
    out = Console(width=100, file=StringIO(), highlight=False)
    print_diagnosis(Diagnosis("arm", found), out)
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    assert "care  friction-speed  |  a, b  |  28 %" in lines
    (below,) = [line for line in lines if "Likely consequences: not-physical" in line]
    assert lines.index(below) == len(lines) - 1  # in one line: the remedy is that of the cause
    page = diagnosis_html(Diagnosis("arm", found))
    assert "1 probable consequence: not-physical" in page


def test_words_between_backticks_are_code_on_the_page() -> None:
    angles = Finding(Severity.STOP, "position-unit", "", "", "", "in deg", "set `columns: {q_1: deg}`")
    page = diagnosis_html(Diagnosis("arm", (angles,)))
    assert "<code>columns: {q_1: deg}</code>" in page
    assert "`" not in page.partition("<main>")[2].partition("</main>")[0]


def test_files_and_exit_codes_of_the_command(here: Path) -> None:
    done = dynid("check", "arm.yaml", "log.csv", "--out", "o")
    assert done.exit_code == 0
    page = Path("o/check.html").read_text(encoding="utf-8")
    for part in ("spectra0", "coverage0", "delays", "Content-Security-Policy"):
        assert part in page
    document = json.loads(Path("o/check.json").read_text(encoding="utf-8"))
    assert document["schema"] == "dynid.check/1"
    assert {"severity", "channel", "place", "value", "remedy"} <= set(document["findings"][0])
    assert json.loads(dynid("check", "experiment.yaml", "--json").output)["robot"] == "arm"
    assert dynid("check", "arm.yaml").exit_code == 2


def test_a_refusal_can_be_overridden_and_is_recorded(here: Path) -> None:
    wrong = columns()
    wrong["tau_2"] *= -1.0
    write("wrong.csv", wrong)
    examined = dynid("check", "arm.yaml", "wrong.csv", "--json")
    assert examined.exit_code == 2
    first = json.loads(examined.output)["findings"][0]
    assert first["refused"] is True
    assert first["channel"] == "joint_2"
    assert "opposite sign" in first["text"]
    given = ("identify", "--robot", "arm.yaml", "--log", "wrong.csv", "--out", "o")
    assert dynid(*given).exit_code == 2
    assert not Path("o").exists()
    done = dynid(*given, "--force")
    assert done.exit_code == 3
    result = json.loads(Path("o/result.json").read_text(encoding="utf-8"))
    assert result["provenance"]["options"]["force"] is True
    assert "forced" in [one["code"] for one in result["warnings"]]


def test_a_log_that_cannot_be_read_does_not_hide_the_others(here: Path) -> None:
    Path("broken.csv").write_text("t,q_1\n0,x\n", encoding="utf-8")
    found = package.check("arm.yaml", ["broken.csv", "log.csv", "nowhere.csv"])
    assert [one.place.split(",")[0] for one in found.findings if one.refused] == ["broken.csv", "nowhere.csv"]
    assert found.excitation is not None


def test_several_faults_are_found_at_once(here: Path) -> None:
    wrong = columns()
    speed = np.gradient(np.column_stack([wrong["q_1"], wrong["q_2"]]), 0.005, axis=0)
    wrong |= {"dq_1": speed[:, 0], "dq_2": np.rad2deg(speed[:, 1])}
    wrong["tau_1"][[100, 300, 500]] += 500.0
    wrong["t"][400:] += 1.0
    write("wrong.csv", wrong)
    found = package.check("arm.yaml", "wrong.csv")
    assert {"refused", "effort-spikes", "gap"} <= set(found.codes())
    (speed_finding,) = [one for one in found.findings if one.code == "refused"]
    assert "velocity in degrees" in speed_finding.text
    assert speed_finding.channel == "dq_2, joint_2"


def test_40_a_joint_that_rests_is_named_in_words(here: Path) -> None:
    still = columns()
    still["q_2"][:] = 0.3
    (here / "runs").mkdir()
    write("runs/still.csv", still)
    found = package.check("arm.yaml", "runs/still.csv")
    (said,) = [one for one in found.findings if one.code == "joint-unexcited" and one.channel == "joint_2"]
    assert "'joint_2' never moves: unknown are its inertia and friction" in said.text
    (more,) = [one for one in found.findings if one.code == "excitation"]
    assert found.excitation is not None
    command = "dynid excite arm.yaml --after runs/still.csv"
    assert f"up to {len(found.excitation.unseen)} more: {command}" in more.remedy
    # `--after` reads files as they are: data in memory, and columns that were mapped, need the result.
    mapped = {key if key != "q_1" else "angle": value for key, value in still.items()}
    write("runs/mapped.csv", mapped)
    others = [package.check("arm.yaml", still)]
    others += [package.check("arm.yaml", "runs/mapped.csv", columns={"q_1": "angle"})]
    for found in others:
        (more,) = [one for one in found.findings if one.code == "excitation"]
        assert "dynid excite arm.yaml --after RESULT --period" in more.remedy


def test_excitation_is_judged_as_the_identification_judges_it(here: Path) -> None:
    estimate = package.check("arm.yaml", "log.csv").estimate
    assert estimate is not None
    robot = package.load_robot("arm.yaml")
    wide = replace(estimate, fit=replace(estimate.fit, condition_scaled=1e4))
    weak = replace(estimate, warnings=(notice("weak-parameters", names="XX_link_2"),))
    said = [[one.code for one in excitation_notices(given, robot, (), "arm", ())] for given in (wide, weak)]
    assert said == [[], ["excitation-poor"]]


def test_rest_and_limits_are_reported(here: Path) -> None:
    long = columns()
    n = len(long["t"])
    long["t"] = np.arange(2 * n) * 0.005
    for name in ("q_1", "q_2", "tau_1", "tau_2"):
        long[name] = np.concatenate([long[name], np.full(n, long[name][-1])])
    long["q_1"] += 2.0
    write("long.csv", long)
    found = package.check("arm.yaml", "long.csv")
    codes = found.codes()
    assert "rest" in codes or "stuck-signal" in codes
    (limits,) = [one for one in found.findings if one.code == "limit-exceeded"]
    assert "q_1 ('joint_1')" in limits.text


def test_34_a_scale_that_nothing_checks_is_said(here: Path) -> None:
    text = Path("arm.yaml").read_text(encoding="utf-8")
    begin, end = text.index("payloads:"), text.index("ties:")
    Path("bare.yaml").write_text(text[:begin] + text[end:], encoding="utf-8")
    assert "scale-unchecked" in package.check("bare.yaml", "log.csv").codes()
    assert "scale-unchecked" not in package.check("arm.yaml", "log.csv").codes()


def test_35_zeros_that_the_motion_cannot_show_are_listed(here: Path) -> None:
    (said,) = [one for one in package.check("arm.yaml", "log.csv").findings if one.code == "not-tested"]
    assert "zero of joint_2" in said.text


def test_degrees_of_several_joints_are_reported_once_each_with_their_columns() -> None:
    """One joint has limits, one turns freely: two findings, and not a third one that has both."""
    robot = package.load_robot("scara")
    limits = {name: own for name, own in robot.limits.items() if name != "elbow"}
    free = replace(robot, limits=limits)
    log = package.simulate(robot, {"rate": 100.0, "duration": 10.0}).log()
    q = log.q.copy()
    q[:, :2] = np.degrees(q[:, :2])
    table = {"t": log.t, "q": q, "tau": log.tau}
    found = [one for one in check(free, table).findings if one.code == "angles-large"]
    assert [one.severity for one in found] == [Severity.STOP, Severity.CARE]
    assert [f"--column 'q_{i + 1}=" in one.remedy for i, one in enumerate(found)] == [True, True]
    assert not [one for one in found if "NAME" in one.remedy]


def test_refusals_are_raised_unless_overridden() -> None:
    error = InputError("wrong unit", file="/somewhere/run.csv", place="column q_1", remedy="give it")
    with pytest.raises(InputError, match="wrong unit"):
        doubt(error)
    with forced():
        made = doubt(error)
    assert (made.code, made.severity, made.remedy) == ("forced", Severity.STOP, "give it")
    assert "run.csv, column q_1: wrong unit" in made.text
    assert "/somewhere" not in made.text


def test_a_line_has_channel_place_and_value() -> None:
    one = notice("clock-reset", count=3, first=1.5)
    assert finding_of(one, (), "run").place == "run, t = 1.5 s"
    late = finding_of(notice("clock-jitter", percent=35.0), ())
    assert late.value == "35 %"
    stuck = finding_of(notice("stuck-signal", names="q_1 (0.86 s), tau_2 (5.4 s)"), ())
    assert (stuck.channel, stuck.value) == ("q_1, tau_2", "0.86 s")


def test_a_log_in_memory_is_examined_too(here: Path) -> None:
    found = package.check("arm.yaml", columns())
    assert loud(found) == []
    assert isinstance(found.logs[0], Log)


def test_a_fit_of_logs_without_motion_blames_no_column() -> None:
    """Any correction fits noise a little better: at rest only the missing motion is named."""
    rng = np.random.default_rng(2)
    t = 0.002 * np.arange(2000)
    q = np.array([0.3, -0.5]) + 1e-6 * rng.normal(size=(2000, 2))
    diagnosis = check(arm(), {"t": t, "q": q, "tau": np.array([-6.0, 2.0]) + rng.normal(size=(2000, 2))})
    stops = [finding.code for finding in diagnosis.findings if finding.severity == "stop"]
    assert stops == ["at-rest"]
    assert diagnosis.findings[0].code == "at-rest"
