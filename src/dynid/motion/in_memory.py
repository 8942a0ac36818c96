"""Columns in memory as a table: mappings of arrays, structured arrays, and frames of other libraries.

Read are frames of pandas, polars and pyarrow, data sets of xarray, and what `scipy.io.loadmat` and
`numpy.load` return. Values that are masked, null or no time (NaT) are missing samples, NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.motion.column_words import Column
from dynid.motion.spoken import named_members
from dynid.motion.table import Table, as_text, check_names, numbers, time_name, with_unit
from dynid.motion.vocabulary import JOINT_SIGNALS


@runtime_checkable
class DataFrame(Protocol):
    """What pandas, polars and others have in common: column names, and a column by its name."""

    @property
    def columns(self) -> Any:
        """Names in order."""

    def __getitem__(self, name: Any, /) -> Any:
        """The column of that name."""


Columns = Mapping[str, Any] | DataFrame | Array
_OBJECTS = (str, bytes, datetime, timedelta)  # what a cell may be besides a number or a missing value
Values = Any  # an array of numpy, or of a library whose arrays turn into one


def has_columns(source: object) -> TypeGuard[Columns]:
    """Whether something in memory has columns with names; the fields of a structured array are such."""
    named = isinstance(source, np.ndarray) and source.dtype.names is not None
    # Of the type: a lazy frame of polars computes and warns if it is asked for its columns.
    framed = hasattr(type(source), "columns") and hasattr(type(source), "__getitem__")
    return named or framed or isinstance(source, Mapping)


def table_from_columns(source: Columns, name: str) -> Table:
    """Columns by name as a table; a two-dimensional array `q` becomes q_1, q_2, ...

    Single values, texts and variables of a data set without samples are no columns. A list of texts beside
    the arrays may name the joints, as in a file.

    Args:
        source: Name -> array of shape (n,), or (n, k) for k columns at once.
        name: Of the log, for messages.
    """
    source = source.collect() if hasattr(source, "collect") else source  # a lazy frame of polars
    names = _names(source)
    check_names([str(label) for label in names], name)
    variables = {str(label): source[label] for label in names}
    variables = {**_time_labels(source, variables), **variables}
    samples, units = _dimension(source, variables), getattr(source, "attrs", {}).get("units")
    units = units if isinstance(units, Mapping) else {}
    arrays, labels, texts = dict[str, Any](), dict[str, Sequence[str]](), dict[str, str]()
    for key, variable in variables.items():
        if samples not in getattr(variable, "dims", (samples,)):
            texts[key] = f"a variable without '{samples}'"
            continue
        variable = variable.transpose(samples, ...) if samples and hasattr(variable, "dims") else variable
        values = as_array(variable)
        if values.size < 2:
            texts[key] = _no_column(values)
            continue
        unit = getattr(variable, "attrs", {}).get("units") if hasattr(variable, "coords") else units.get(key)
        headed = with_unit(key, unit)
        arrays[headed], labels[headed] = _vector(values, key), _labels(variable)
    time = time_name(list(arrays)) or next((key for key, x in arrays.items() if x.ndim == 1), "")
    lists = {key: x for key, x in arrays.items() if _is_list(x, len(arrays[time]) if time else 0)}
    texts |= {key: f"a list of {len(x)} texts" for key, x in lists.items()}
    arrays = {key: x for key, x in arrays.items() if key not in lists}
    _check_shapes(arrays, time or next(iter(arrays), ""), name)
    columns = {key: x for whole in arrays.items() for key, x in _split(*whole, labels[whole[0]], name)}
    skipped = {key: as_text(_text(x[0])) for key, x in columns.items() if x.dtype.kind not in "biufMm"}
    columns = {key: numbers(x) for key, x in columns.items() if key not in skipped}
    texts |= skipped
    spoken = named_members({key: [_text(cell) for cell in x] for key, x in lists.items()}, columns)
    return Table(columns, tuple(texts), {"format": "arrays in memory"}, texts=texts, spoken=spoken)


def as_array(values: Values) -> Any:
    """Values of any library as an array: masked and null ones are NaN (NaT), times are those of UTC."""
    zoned = getattr(values, "tz", None) or getattr(getattr(values, "dtype", None), "tz", None)
    if zoned is not None and hasattr(values, "tz_convert"):
        stamps: Any = getattr(values, "dt", values)  # of a column; an index has them itself
        values = stamps.tz_convert(None)
    array = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        missing = np.ma.getmaskarray(values)
        array = array.astype(float) if array.dtype.kind in "biu" else array.copy()
        if array.dtype.kind in "fcmMO":
            array[missing] = "NaT" if array.dtype.kind in "mM" else np.nan
    return _without_objects(array, values) if array.dtype.kind == "O" else array


def given_array(values: Values, label: str, shape: tuple[int, ...] | None, name: str) -> Float[Array, "*n"]:
    """An array as floating point numbers; refused if it has another shape. Dates are seconds from the first.

    Args:
        values: A column or row is a vector, where one is expected.
        label: What it is.
        shape: Expected; None: any number of samples.
        name: Of the log, for messages.
    """
    array = as_array(values)
    if (shape is None or len(shape) == 1) and array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    numeric = array.dtype.kind in "biufmM"
    if not numeric or (array.ndim != 1 if shape is None else array.shape != shape):
        what = f"has shape {array.shape}" if numeric else "has no numbers"
        what = "is missing" if values is None else what
        raise InputError(
            f"{label} {what}, expected {shape or '(n,)'}",
            place=name,
            remedy="samples are rows: give t of shape (n,), and q, tau, .. with a column per joint or motor",
        )
    return np.asarray(numbers(array) if array.dtype.kind in "mM" else array, dtype=float)


def _without_objects(array: Any, values: Any) -> Any:
    """Numbers and times that a library keeps as objects; text stays as it is."""
    first = next((cell for cell in array.flat if isinstance(cell, _OBJECTS) and cell == cell), None)
    if isinstance(first, str | bytes):
        return array
    if isinstance(first, datetime):
        cells = [cell.astimezone(UTC).replace(tzinfo=None) if _is_zoned(cell) else cell for cell in array]
        return np.array(cells, dtype="datetime64[ns]")
    if isinstance(first, timedelta):
        return np.array(list(array), dtype="timedelta64[ns]")
    try:  # pandas knows its own missing values
        return (
            values.to_numpy(dtype=float, na_value=np.nan) if hasattr(values, "isna") else array.astype(float)
        )
    except (TypeError, ValueError):
        return array


def _is_zoned(cell: object) -> bool:
    return isinstance(cell, datetime) and cell.tzinfo is not None


def _names(source: Columns) -> list[Any]:
    """Of the columns; a table of pyarrow has its arrays under `columns`."""
    if isinstance(source, np.ndarray):
        return list(source.dtype.names or ())
    return list(source if isinstance(source, Mapping) else getattr(source, "column_names", source.columns))


def _time_labels(source: Columns, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Time that labels the rows: the index of a pandas frame, or a coordinate of an xarray data set."""
    if time_name(list(variables)):
        return {}
    coordinates = getattr(source, "coords", {})
    labels = {str(key): coordinates[key] for key in coordinates}
    index: Any = getattr(source, "index", None)
    if getattr(index, "name", None):
        labels[str(index.name)] = index
    elif getattr(getattr(index, "dtype", None), "kind", "") in ("m", "M"):  # dates, which need no name
        labels["t"] = index
    time = time_name(list(labels))
    return {time: labels[time]} if time else {}


def _dimension(source: Columns, variables: Mapping[str, Any]) -> str:
    """Name of the dimension of the samples in a data set of xarray, that of its time; empty: it has none."""
    time = time_name(list(variables)) if hasattr(source, "data_vars") else ""
    dims: Sequence[Any] = variables[time].dims if time else ()
    return str(dims[0]) if len(dims) == 1 else ""


def _labels(variable: Any) -> list[str]:
    """Labels along the second dimension of an xarray variable; empty: it has none."""
    dims: Sequence[Any] = getattr(variable, "dims", ())
    if len(dims) != 2 or dims[1] not in getattr(variable, "coords", ()):
        return []
    cells = np.asarray(variable.coords[dims[1]]).tolist()
    return [f"{cell:g}" if isinstance(cell, float) else _text(cell) for cell in cells]


def _text(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def _no_column(values: Any) -> str:
    """What a value is that is no column."""
    if not values.size:
        return "an empty array"
    cell = values.ravel()[0]
    return as_text(_text(cell)) if isinstance(cell, str | bytes) else f"one value: {str(cell)[:40]}"


def _is_list(values: Any, samples: int) -> bool:
    """Whether an array is a list of texts, as of the names of the joints, and no column."""
    is_text = values.dtype.kind in "US" or (values.dtype.kind == "O" and isinstance(values.ravel()[0], str))
    return is_text and values.ndim == 1 and len(values) != samples


def _vector(values: Any, name: str) -> Any:
    """A matrix of one column or row as a vector, as MATLAB has them; `q` of one joint stays a matrix."""
    single = values.ndim == 2 and 1 in values.shape and name not in JOINT_SIGNALS
    return values.ravel() if single else values


def _split(name: str, values: Any, labels: Sequence[str], file: str) -> Iterator[tuple[str, Any]]:
    """Columns of an array: itself, or name_1, name_2, ... or with its labels; a unit stays at the end."""
    if values.ndim == 1:
        yield name, values
        return
    column = Column(name)
    unit = "" if column.bracket is None else name[len(column.base) :]
    ends = labels or [str(k + 1) for k in range(values.shape[1])]
    names = [f"{name.removesuffix(unit)}_{end}{unit}" for end in ends]
    check_names(names, file)
    yield from ((each, values[:, k]) for k, each in enumerate(names))


def _check_shapes(arrays: Mapping[str, Any], first: str, name: str) -> None:
    if not arrays:
        raise InputError(
            "the table has no samples", place=name, remedy="give at least a few seconds of motion"
        )
    samples = len(arrays[first])
    for key, values in arrays.items():
        if values.ndim not in (1, 2) or len(values) != samples:
            turned = values.ndim == 2 and values.shape[1] == samples
            raise InputError(
                f"'{key}' has shape {values.shape}, but '{first}' has {arrays[first].shape}",
                place=name,
                remedy=f"samples are rows: give {key}.T"
                if turned
                else "give arrays of n samples, or of n rows and one column per joint",
            )
