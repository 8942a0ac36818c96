"""dynid excite on a cable robot: files, the way back from an interruption, and a log that can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cases.free_motion.excitation import FreeExcitation, FreeStart, FreeStarter, excite_free
from dynid.cases.free_motion.excitation_files import FREE_FILES
from dynid.cases.free_motion.simulation import simulate_free
from dynid.cli import main
from dynid.common.errors import InputError
from dynid.experiment.tasks import ExciteSettings, FreeSetSettings
from dynid.mechanism.load import load_robot
from dynid.motion.logs import read_log
from dynid.motion.settings import LogEntry
from dynid.robots.truth import Truth
from dynid.simulation.motion import MotionChoice
from dynid.simulation.simulation import Simulation

SEARCH = FreeSetSettings(count=3, samples=20, duration=0.5, whole=0.6, library=6, restarts=1, rounds=1)
SETTINGS = ExciteSettings(starts=2, seed=5, search=SEARCH)


class _Interrupted(FreeStarter):
    """A starter that is stopped when its second start begins."""

    def run(self, number: int) -> FreeStart:
        if number:
            raise KeyboardInterrupt
        return super().run(number)


@pytest.fixture(scope="module")
def found() -> FreeExcitation:
    return excite_free("cable4", SETTINGS)


@pytest.fixture(scope="module")
def folder(found: FreeExcitation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("free") / "set"
    found.save(path)
    return path


def test_an_interrupted_search_goes_on_to_the_same_set(
    found: FreeExcitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "set.journal.jsonl"
    monkeypatch.setattr("dynid.cases.free_motion.excitation.FreeStarter", _Interrupted)
    with pytest.raises(KeyboardInterrupt):
        excite_free("cable4", SETTINGS, journal=journal)
    monkeypatch.undo()
    assert len(journal.read_text().splitlines()) == 2
    again = excite_free("cable4", SETTINGS, journal=journal)
    assert again.starts == found.starts
    np.testing.assert_array_equal(again.found.releases.starts, found.found.releases.starts)


def test_files(found: FreeExcitation, folder: Path) -> None:
    assert sorted(one.name for one in folder.iterdir()) == sorted(FREE_FILES)
    document = json.loads((folder / "excitation.json").read_text())
    assert document["criterion_name"] == "c003"
    assert document["criterion"] == pytest.approx(found.criterion)
    assert document["spread"]["best"] <= document["spread"]["worst"]
    assert len(document["motions"]) == 3
    assert {"cable1", "pose_x"} <= {one["name"] for one in document["limits"]}
    assert all(one["margin_percent"] >= 0.0 for one in document["limits"])
    page = (folder / "report.html").read_text()
    assert "How to release each motion" in page
    assert "http" not in page.split("</style>")[1].split("<script>")[0]


def test_the_motions_are_a_log(found: FreeExcitation, folder: Path) -> None:
    log = read_log(LogEntry(str(folder / "motions.csv")), load_robot("cable4"), need_effort=False)
    assert len(log.segments) == 3
    np.testing.assert_allclose(log.q[: len(found.found.motions.t), :3], found.found.motions.q[:, 0, :3])


def test_released_lengths_are_those_of_the_rest(found: FreeExcitation, folder: Path) -> None:
    table = np.genfromtxt(folder / "releases.csv", delimiter=",", names=True)
    lengths = found.releasing.robot.lengths(found.found.releases.rest)
    shown = np.column_stack([table[f"l0_{i}"] for i in range(1, 5)])
    np.testing.assert_allclose(shown, lengths, atol=1e-8)  # nine digits are written


def test_other_criteria() -> None:
    few = SEARCH.changed(count=2, library=3)
    settings = SETTINGS.changed(starts=1, search=few, criterion="sigma", sigma=("ZZ_platform",))
    assert np.isfinite(excite_free("cable4", settings).criterion)
    with pytest.raises(InputError, match="ZZ_platfrom"):
        excite_free("cable4", settings.changed(sigma=("ZZ_platfrom",)))


def test_a_robot_of_unknown_mass_is_refused(tmp_path: Path) -> None:
    text = Path(str(load_robot("cable4").file)).read_text()
    file = tmp_path / "nameless.yaml"
    file.write_text(
        "\n".join(line for line in text.splitlines() if "prior" not in line and line != "bodies:")
    )
    with pytest.raises(InputError, match="mass of 'platform'"):
        excite_free(str(file), SETTINGS)


def test_recorded_motions_count_with_the_set(found: FreeExcitation, folder: Path) -> None:
    """What was recorded is the information of these motions, so that the same set doubles it."""
    starter = FreeStarter("cable4", SETTINGS.changed(starts=1, after=(str(folder / "motions.csv"),)))
    known, own = starter.known, found.found.information
    size = np.sqrt(np.diag(own))
    # The log's rows are filtered, thinned to other instants, and lose the ends of runs of half a second.
    angle = np.sum(known * own / np.outer(size, size) ** 2)
    angle /= np.linalg.norm(known / np.outer(size, size)) * np.linalg.norm(own / np.outer(size, size))
    assert angle > 0.8
    assert starter.run(0).value < min(start.value for start in found.starts)


def test_a_result_holds_no_rows(folder: Path) -> None:
    with pytest.raises(InputError, match="is a result"):
        FreeStarter("cable4", SETTINGS.changed(after=(str(folder),)))


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    run = CliRunner()
    wrong = run.invoke(main, ["excite", "cable4", "--harmonics", "3", "--out", str(tmp_path / "a")])
    assert wrong.exit_code == 2
    assert "--harmonics does not apply to free motions" in wrong.output
    wrong = run.invoke(main, ["excite", "scara", "--motions", "3", "--out", str(tmp_path / "b")])
    assert "--motions does not apply" in wrong.output


def test_releases_and_motions_are_input_of_a_simulation(found: FreeExcitation, folder: Path) -> None:
    """The same truth from the same releases gives the motions that were designed."""
    robot = load_robot("cable4")
    values = Simulation(rate=100.0, duration=0.5, truth=Truth("demo"))
    for name in ("releases.csv", "motions.csv"):
        file = str(folder / name)
        again = simulate_free(robot, replace(values, motion=MotionChoice(file)))
        assert again.motions.q.shape[:2] == (51, 3)
        np.testing.assert_allclose(again.lengths, found.found.releases.lengths, rtol=1e-8)  # nine digits
        starts = found.found.releases.starts
        first = np.abs(again.motions.q[0])  # the sign of a quaternion is free
        np.testing.assert_allclose(first, np.abs(starts), atol=1e-7)  # nine digits
        assert again.described()["motion"] == f"3 releases of {name}"
