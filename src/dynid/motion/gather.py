"""From the chosen columns of a table to arrays in SI units; attitudes become unit quaternions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Shaped
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.paged import RANGE, empty, flags, ranges, release
from dynid.mechanism.measured_pose import ANGLE_ORDERS
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.clock import dates_in_seconds, may_be_dates
from dynid.motion.settings import ColumnMap
from dynid.motion.slots import ANGLES, Slot, quaternion_starts
from dynid.motion.table import Record, Table, any_finite
from dynid.motion.units import factor

_LARGEST = 1e100  # above any quantity of a robot; some recorders write 1e308 for missing values
CONVENTIONS = tuple(ANGLE_ORDERS)
_LEAST_ROWS = 3  # of a row number
_SAME_SIGNAL = 0.05  # rms difference over rms of the signal: a robot follows its reference better than this
_LOST = 0.1  # length of a quaternion: trackers write zeros when they lose the target
_MOST_OFF = 0.1  # deviation of the typical length from 1: drift and rounding are much smaller


@dataclass(frozen=True, eq=False)
class Gathered:
    """A raw record with the origin of its columns."""

    record: Record
    effort_present: Bool[Array, "a"]
    mapping: dict[str, str]
    choices: dict[str, str]
    notices: tuple[Notice, ...]


def gather(
    table: Table,
    mechanism: Mechanism,
    known: Sequence[Slot],
    chosen: Mapping[str, ColumnMap],
    angles: str,
    file: object,
) -> Gathered:
    """Arrays of the chosen columns; refuses a log without time or with unmeasured joints."""
    if "t" not in chosen:
        raise InputError(
            f"no time column 't'; columns are {table.listing()}",
            file=file,
            place="header",
            remedy="name it t, or map it: --column t=NAME, or columns: {t: NAME}; a file without time needs"
            " one: t = number of the sample * step",
        )
    if "segment" in table.skipped and "segment" not in chosen:
        raise InputError(
            "the column 'segment' contains text; without run numbers the filter would mix runs",
            file=file,
            place="column 'segment'",
            remedy="number the runs",
        )
    dated = _dated(table, chosen["t"])
    signals = _filled(mechanism, known, chosen, table, file, None if dated is None else dated[0])
    values = signals.single
    if dated is None:
        _refuse_row_number(values["t"], chosen["t"], file)
    count = len(values["t"])
    notices: list[Notice] = []
    q = _positions(mechanism, known, signals, chosen, angles, table, file)
    for joint, start in quaternion_starts(mechanism).items():
        notices += check_lengths(q[:, start : start + 4], joint, file)
    dq, ddq, q_ref = (_rates(name, known, signals, chosen, notices) for name in ("dq", "ddq", "q_ref"))
    present = _efforts(mechanism, signals.many["tau"], notices)
    _refuse_positions(q, signals.many["tau"], chosen, file)
    breaks = _breaks(values.get("segment"), count)
    record = Record(values["t"], q, dq, ddq, signals.many["tau"], breaks, str(file), q_ref)
    record, overlap = _within(record, table, [column.name for column in chosen.values()])
    mapping = {key: column.name for key, column in chosen.items()}
    used = set(mapping.values())
    unused = [name for name in table.columns if name not in used]
    unused += [f"{name} ({table.texts.get(name, 'text').split(':')[0]})" for name in table.skipped]
    choices = {"unused columns": ", ".join(unused)} if unused else {}
    choices |= ({} if dated is None else dated[1]) | overlap
    if chosen["t"].name == table.time != "t":
        choices["time column"] = table.time
    return Gathered(record, present, mapping, choices, tuple(notices))


def _within(record: Record, table: Table, used: Sequence[str]) -> tuple[Record, dict[str, str]]:
    """The samples at which every used signal has begun and none has ended; how many were dropped, in words.

    Signals that are not used do not matter: a camera that starts late shortens no log.
    """
    outside = [table.outside[name] for name in used if name in table.outside]
    if not outside:
        return record, {}
    keep = ~np.any(outside, axis=0)
    words = f"{int(np.sum(~keep))} rows outside the overlap of the used signals dropped"
    return record.rows(np.flatnonzero(keep)), {"overlap": words}


@dataclass(frozen=True, eq=False)
class _Signals:
    """Chosen columns in SI units.

    Attributes:
        single: Time, run number and angles of attitudes by key, each shape (n,).
        many: Positions, rates, references and efforts by quantity, each shape (n, k); NaN where there is no
            column. Quantities without any column are missing.
    """

    single: dict[str, Float[Array, "n"]]
    many: dict[str, Float[Array, "n k"]]


def _filled(
    mechanism: Mechanism,
    known: Sequence[Slot],
    chosen: Mapping[str, ColumnMap],
    table: Table,
    file: object,
    t: Float[Array, "n"] | None,
) -> _Signals:
    """Read the chosen columns, block by block."""
    count = table.count
    widths = dict.fromkeys(("q", "dq", "ddq", "q_ref"), len(mechanism.measured_positions))
    widths["tau"] = len(mechanism.actuators)
    used = [slot for slot in known if slot.key in chosen and not (slot.key == "t" and t is not None)]
    needed = {"q", "tau", *(slot.quantity for slot in used)}
    many = {name: empty((count, width)) for name, width in widths.items() if name in needed}
    single = {slot.key: empty(count) for slot in used if slot.quantity not in widths}
    first: dict[str, int] = {}
    for start, block in table.blocks(list(dict.fromkeys(chosen[slot.key].name for slot in used))):
        size = len(next(iter(block.values())))
        for name, array in many.items():
            if len({slot.index for slot in used if slot.quantity == name}) < array.shape[1]:
                array[start : start + size] = np.nan
        for slot in used:
            column = chosen[slot.key]
            x = block[column.name]
            if slot.key == "t" and (first or x.dtype.kind in "iu"):
                # Stamps of clocks do not fit a float.
                x = x - first.setdefault("t", int(x[0]) if abs(int(x[0])) > 2**53 else 0)
            values = si_values(x, column, "", file)
            if slot.quantity in widths:
                many[slot.quantity][start : start + size, slot.index] = values
            else:
                single[slot.key][start : start + size] = values
        if count > RANGE:
            release()
    return _Signals(single if t is None else {"t": t, **single}, many)


def _dated(table: Table, time: ColumnMap) -> tuple[Float[Array, "n"], dict[str, str]] | None:
    """Time in [s] from the first stamp, if the stamps are dates and the column map gives no unit."""
    if time.unit is not None or time.scale != 1.0 or time.offset != 0.0:
        return None
    _, block = next(table.blocks([time.name]), (0, {}))
    return dates_in_seconds(table.columns[time.name]) if may_be_dates(block.get(time.name)) else None


def _refuse_row_number(t: Float[Array, "n"], column: ColumnMap, file: object) -> None:
    """Refuse 0, 1, 2, ... as time: rows were counted, or the clock has a unit that must be given."""
    if column.unit is not None or column.scale != 1.0 or len(t) < _LEAST_ROWS or t[0] not in (0.0, 1.0):
        return
    if all(np.array_equal(t[a:b], t[0] + np.arange(a, b)) for a, b in ranges(len(t))):
        raise InputError(
            f"column '{column.name}' counts the rows ({t[0]:g}, {t[1]:g}, {t[2]:g}, ...): this is not a time",
            file=file,
            place=f"column '{column.name}'",
            remedy="map the time column; if this is a clock, give its unit: "
            f"--column 't={column.name}[ms]', or columns: {{t: {{name: {column.name}, unit: ms}}}}",
        )


def _example(missing: Collection[int]) -> str:
    """A mapping of positions as an option has it: of the only one that is missing, or of all by a pattern."""
    return f"q_{min(missing) + 1}=NAME" if len(missing) == 1 else "q_{i}=NAME_{i}"


def si_values(x: Shaped[Array, "n"], column: ColumnMap, key: str, file: object) -> Float[Array, "n"]:
    """SI value: scale * (x in unit) + offset; integer time stamps start at zero before they become floats."""
    if key == "t" and x.dtype.kind in "iu" and len(x) and abs(int(x[0])) > 2**53:
        x = x - x[0]
    gain = column.scale * factor(column.unit, column=column.name, file=file)
    values = np.asarray(x, dtype=float)
    if gain != 1.0 or column.offset != 0.0:
        values = values * gain + column.offset
    absurd = np.abs(values) > _LARGEST
    return np.where(absurd, np.inf, values) if absurd.any() else values


def _positions(
    mechanism: Mechanism,
    known: Sequence[Slot],
    signals: _Signals,
    chosen: Mapping[str, ColumnMap],
    angles: str,
    table: Table,
    file: object,
) -> Float[Array, "n m"]:
    names = mechanism.measured_positions
    q, values = signals.many["q"], signals.single
    missing = set(range(len(names)))
    missing -= {slot.index for slot in known if slot.quantity == "q" and slot.key in chosen}
    for joint, start in quaternion_starts(mechanism).items():
        turned = [key for angle in ANGLES if (key := f"{joint}_{angle}") in values]
        entries = range(start, start + 4)
        if turned and not missing.issuperset(entries):
            given = [f"q_{i + 1}" for i in entries if i not in missing]
            shown = [" ".join(chosen[key].name for key in keys) for keys in (turned, given)]
            raise InputError(
                f"the attitude of '{joint}' is given twice: as angles ({shown[0]}) and as a quaternion"
                f" ({shown[1]})",
                file=file,
                place="header",
                remedy="keep one of them: rename or remove the other columns",
            )
        if len(turned) == len(ANGLES):
            attitude = np.column_stack([values[key] for key in turned])
            q[:, start : start + 4] = quaternion(attitude, angles)
            missing.difference_update(entries)
    if missing:
        sensor = mechanism.force_sensor
        inertial = sensor is not None and sensor.imu is not None
        # Columns are matched for all joints or none: those without any column of their name are in the way.
        taken = {column.name for column in chosen.values()}  # an effort of that name is no position
        free = [column for column in table.columns if column not in taken]
        nameless = {i for i in missing if not any(names[i] in column for column in free)}
        missing = nameless or missing
        lost = ", ".join(names[i] if inertial else f"'{names[i]}' (q_{i + 1})" for i in sorted(missing))
        absent = f"the IMU: {lost}" if inertial else f"the position of {lost}"
        raise InputError(
            f"no column for {absent}; columns are {table.listing()}",
            file=file,
            place="header",
            remedy=f"rename the columns, or map them: --column '{_example(missing)}'; or "
            + (
                "remove `imu:` to use the joints"
                if inertial
                else "list only the logged joints under `measured:`"
                if mechanism.is_closed
                else f"say where they stand still, e.g. --known {names[min(missing)]}=0 (rad or m)"
            ),
        )
    finite = any_finite(q)
    for i, name in enumerate(names):
        if not finite[i]:
            raise InputError(
                f"the position of '{name}' contains no finite value",
                file=file,
                remedy="check the recorder, or map another column under `columns:`",
            )
    return q


def _rates(
    quantity: str,
    known: Sequence[Slot],
    signals: _Signals,
    chosen: Mapping[str, ColumnMap],
    notices: list[Notice],
) -> Float[Array, "n m"] | None:
    """Measured rates (or reference positions), if the log has them for every coordinate."""
    values = signals.many.get(quantity)
    if values is None:
        return None
    finite = any_finite(values)
    columns = {slot.index for slot in known if slot.quantity == quantity and slot.key in chosen}
    n_finite = sum(bool(finite[i]) for i in columns)
    if n_finite == values.shape[1]:
        return values
    if n_finite:
        instead = "not used" if quantity == "q_ref" else "derived for all"
        notices.append(
            notice(
                "rates-incomplete", quantity=quantity, found=n_finite, total=values.shape[1], instead=instead
            )
        )
    return None


def _efforts(mechanism: Mechanism, tau: Float[Array, "n a"], notices: list[Notice]) -> Bool[Array, "a"]:
    """Which actuators have an effort."""
    present = any_finite(tau)
    absent = [
        actuator.name for actuator, logged in zip(mechanism.actuators, present, strict=True) if not logged
    ]
    if absent and present.any():
        notices.append(notice("effort-absent", names=", ".join(absent)))
    return present


def _refuse_positions(
    q: Float[Array, "n m"], tau: Float[Array, "n a"], chosen: Mapping[str, ColumnMap], file: object
) -> None:
    """Refuse efforts that are the positions, in their unit: those are references (`tq` may mean target q)."""
    if q.shape[1] != tau.shape[1] or q.shape[1] < 2 or "tau_1" not in chosen:
        return
    if all(_is_same(x, y) for x, y in zip(q[:RANGE].T, tau[:RANGE].T, strict=True)):
        first = chosen["tau_1"].name
        raise InputError(
            f"the efforts equal the positions within {100 * _SAME_SIGNAL:g} % in every joint: columns like"
            f" '{first}' are positions, probably references",
            file=file,
            place=f"column '{first}'",
            remedy="map the measured efforts: --column 'tau_{i}=NAME_{i}'",
        )


def _is_same(x: Float[Array, "n"], y: Float[Array, "n"]) -> bool:
    """Whether two signals differ by a constant and little else."""
    known = (np.abs(x) < _LARGEST**0.25) & (np.abs(y) < _LARGEST**0.25)
    x, y = x[known], y[known]
    return bool(len(x) and np.std(x - y) < _SAME_SIGNAL * np.std(x))


def _breaks(segment: Float[Array, "n"] | None, count: int) -> Bool[Array, "n"]:
    """Where the segment number changes."""
    breaks = flags(count, False)
    breaks[:1] = True
    if segment is not None:
        breaks[1:] = segment[1:] != segment[:-1]
    return breaks


def quaternion(angles: Float[Array, "n 3"], convention: str) -> Float[Array, "n 4"]:
    """Unit quaternions (w, x, y, z) of R = Rx(roll) Ry(pitch) Rz(yaw), or Rz Ry Rx for `zyx`.

    Args:
        angles: Roll, pitch, yaw, shape (n, 3), in [rad].
        convention: The order of the factors.
    """
    if convention not in CONVENTIONS:
        raise InputError(
            f"unknown angle convention '{convention}'" + nearest(convention, CONVENTIONS), place="angles"
        )
    turns = [_about(axis, angles[:, axis]) for axis in range(3)]
    first, second, third = turns if convention == "xyz" else turns[::-1]
    return _product(_product(first, second), third)


def check_order(mechanism: Mechanism, angles: str, file: object) -> None:
    """Refuse a log whose single angles have another order than the robot file gives them."""
    for pose in mechanism.poses:
        if pose.has_single_angles and pose.angles != angles:
            single = ", ".join(name for name in pose.of if name not in ("x", "y", "z"))
            raise InputError(
                f"the robot file defines {single} of the measured pose '{pose.name}' in the order"
                f" '{pose.angles}', the experiment in the order '{angles}'",
                file=file,
                place="angles",
                remedy="give 'angles' the same value in both",
            )


def check_lengths(q: Float[Array, "n 4"], joint: str, file: object) -> list[Notice]:
    """Mark lost attitudes (all zero) as NaN, in place; refuse columns that are not unit quaternions.

    The length itself does not matter later, so a slow drift of it is left as it is.
    """
    length = np.linalg.norm(q, axis=1)
    lost = length < _LOST
    seen = length[length >= _LOST]
    typical = float(np.median(seen)) if len(seen) else 0.0
    if abs(typical - 1.0) > _MOST_OFF:
        raise InputError(
            f"the quaternion of '{joint}' has the length {typical:.3g} instead of 1",
            file=file,
            remedy="check which columns are qw, qx, qy and qz, and their scale",
        )
    if not lost.any():
        return []
    q[lost] = np.nan
    return [notice("attitude-lost", count=int(lost.sum()), joint=joint)]


def _about(axis: int, angle: Float[Array, "n"]) -> Float[Array, "n 4"]:
    turned = np.zeros((len(angle), 4))
    turned[:, 0] = np.cos(0.5 * angle)
    turned[:, 1 + axis] = np.sin(0.5 * angle)
    return turned


def _product(a: Float[Array, "n 4"], b: Float[Array, "n 4"]) -> Float[Array, "n 4"]:
    w = a[:, 0] * b[:, 0] - np.sum(a[:, 1:] * b[:, 1:], axis=1)
    v = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])
    return np.column_stack([w, v])
