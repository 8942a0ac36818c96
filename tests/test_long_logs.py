"""Long logs: block by block the same result as at once, arrays that page out, bounded choices."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dynid import load_robot
from dynid.choice import excerpt
from dynid.common import paged
from dynid.motion import clock, parquet_file
from dynid.motion.clean import clean
from dynid.motion.fault_scan import facts, flat_tops, spikes, stuck
from dynid.motion.logs import log_from_arrays, read_log
from dynid.motion.position_faults import position_steps
from dynid.motion.table import Record
from dynid.simulation.files import write_columns


@pytest.fixture
def short_ranges(monkeypatch) -> None:
    """Ranges of 64 samples: a small log is a long one."""
    monkeypatch.setattr(paged, "RANGE", 64)
    monkeypatch.setattr(parquet_file, "_BATCH", 50)
    monkeypatch.setattr(paged, "LARGE", 1024)


def recording(n: int = 3000) -> dict[str, np.ndarray]:
    rng, t = np.random.default_rng(2), 0.002 * np.arange(n)
    columns = {"t": t}
    for i in range(1, 3):
        columns[f"q_{i}"] = np.sin(i * t) + 1e-4 * rng.normal(size=n)
        columns[f"tau_{i}"] = np.cos(i * t) + 1e-2 * rng.normal(size=n)
    columns["q_1"][[127, 128, 700]] += [0.3, 0.0, -0.4]  # at the border of two ranges, and inside one
    columns["tau_2"][[63, 64, 1500]] += [2.0, 0.0, -3.0]
    columns["tau_1"][200:700] = columns["tau_1"][200]
    columns["q_2"][2000:2003] = np.nan
    return columns


def test_blocks_change_nothing(tmp_path, request) -> None:
    columns, robot = recording(), load_robot("fivebar")
    path = write_columns(columns, tmp_path / "a.parquet")
    whole = read_log(path, robot)
    request.getfixturevalue("short_ranges")
    parts = read_log(path, robot)
    assert isinstance(parts.q, np.ndarray)
    assert not parts.q.flags.owndata
    for name in ("t", "q", "tau", "valid"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    assert parts.segments == whole.segments
    assert parts.dt == pytest.approx(whole.dt, rel=1e-14)  # a sum in another order
    assert [one.text for one in parts.notices] == [one.text for one in whole.notices]
    assert {one.code for one in whole.notices} >= {"position-spikes", "effort-spikes", "stuck-signal"}


def test_faults_at_the_borders_of_ranges(short_ranges) -> None:
    columns = recording()
    values = np.column_stack([columns["q_1"], columns["tau_2"]])
    known = facts(values, ["q_1", "tau_2"])
    assert [at.tolist() for at in spikes(values, known, 2e-3)] == [[127, 700], [63, 1500]]
    moving = np.ones(3000, bool)
    assert stuck(columns["tau_1"], moving, 100) == [(200, 700)]
    x = np.clip(columns["tau_2"], -0.9, 5.0)
    (flat,) = flat_tops(x[:, None], facts(x[:, None], ["x"]))
    assert flat is not None
    assert np.array_equal(flat, x == -0.9)


def test_steps_at_the_borders_of_ranges(short_ranges) -> None:
    robot, n = load_robot("fivebar"), 1000
    q = np.sin(np.outer(0.002 * np.arange(n), [1.0, 2.0]))
    for at in (62, 63, 64, 65, 66, 500):
        moved = q.copy()
        moved[at:, 0] += 0.2
        log = log_from_arrays(robot, 0.002 * np.arange(n), moved, np.cos(q))
        (found,) = position_steps(log)
        assert f"t = {log.t[at]:.4g} s" in found.text
        assert "more" not in found.text


def test_large_arrays_page_out_and_keep_their_values(monkeypatch) -> None:
    monkeypatch.setattr(paged, "LARGE", 1024)
    x = paged.empty((1000, 3))
    x[:] = np.arange(3000.0).reshape(1000, 3)
    paged.release()
    np.testing.assert_array_equal(x, np.arange(3000.0).reshape(1000, 3))
    count = len(paged._maps)
    del x
    assert len(paged._maps) == count - 1


def peak_of_cleaning(n: int) -> int:
    """Bytes that cleaning a log of n samples with three faults takes at most, without its mapped arrays."""
    t, q, tau = paged.empty(n), paged.empty((n, 2)), paged.empty((n, 2))
    t[:] = 0.001 * np.arange(n)
    q[:] = np.sin(np.outer(t, [1.0, 1.3]))
    tau[:] = np.cos(np.outer(t, [1.1, 0.7]))
    tau[5000:6000, 0] = tau[5000, 0]  # stuck
    q[9000, 1] += 0.5  # a spike
    tau[20_000, 1] = np.nan
    record = Record(t, q, None, None, tau, paged.flags(n, False))
    tracemalloc.start()
    cleaned = clean(record, angles=np.ones(2, bool), time_unit_given=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(cleaned.segments) == 1
    assert {item.code for item in cleaned.notices} == {"position-spikes", "stuck-signal", "not-finite"}
    return peak


def test_memory_of_cleaning_does_not_grow_with_the_log(monkeypatch) -> None:
    """Flags of all samples at once, and parts that keep whole arrays alive, took 450 MB of 50 million."""
    monkeypatch.setattr(paged, "LARGE", 1 << 14)
    monkeypatch.setattr(paged, "RANGE", 1 << 13)
    monkeypatch.setattr(paged, "_WINDOW", 1 << 8)
    for module in (paged, clock):
        monkeypatch.setattr(module, "LONG", 1 << 12)
    peak_of_cleaning(60_000)  # imports
    more = peak_of_cleaning(260_000) - peak_of_cleaning(60_000)
    assert more < 0.5 * 200_000, f"{more / 200_000:.2g} bytes per sample"


def test_without_room_on_the_disk_arrays_stay_in_memory(monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(paged, "LARGE", 1024)
    monkeypatch.setattr(paged.os, "posix_fallocate", full)
    assert paged.empty(1000).flags.owndata


def test_results_come_in_order_and_do_not_pile_up() -> None:
    begun: list[int] = []

    def work(k: int) -> int:
        begun.append(k)
        return k * k

    found = paged.in_order(work, range(1000), 2)
    assert next(found) == 0
    assert len(begun) <= 2 * paged._AHEAD
    assert list(found) == [k * k for k in range(1, 1000)]


def test_settings_of_very_long_logs_are_compared_on_stretches(monkeypatch) -> None:
    robot, n = load_robot("fivebar"), 4000
    q = np.sin(np.outer(0.002 * np.arange(n), [1.0, 2.0]))
    log = log_from_arrays(robot, 0.002 * np.arange(n), q, np.cos(q))
    assert excerpt.excerpts([log]) == (log,)
    assert excerpt.words([log]) == {}
    monkeypatch.setattr(excerpt, "MOST_SAMPLES", 1000)
    (part,) = excerpt.excerpts([log])
    assert part.q is log.q
    assert len(part.segments) == 10
    assert sum(stop - start for start, stop in part.segments) == 1000
    assert part.segments[0][0] < n // 10
    assert part.segments[-1][1] > n - n // 10
    assert "1000 of 4000 samples" in excerpt.words([log])["held-out errors"]
