"""Reader of NumPy files (.npz, .npy): sizes are checked against the archive before data are read."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.reading import check_size, readable, size_of
from dynid.motion.series import Unread, table_of_tree
from dynid.motion.table import Table, numbers

_MOST_MEMBERS = 10_000


def read_npz(path: Path, drop_bad_rows: bool = False) -> Table:
    """Arrays of an archive by name; (n, k) becomes `name_1`, .. Objects (pickles) are refused."""
    tree: dict[str, Any] = {}
    with readable("NPZ file", path), ZipFile(path) as archive:
        members = archive.infolist()
        _check_members(members, path)
        for member in members:
            with archive.open(member) as stream:
                _place(
                    tree,
                    member.filename.removesuffix(".npy"),
                    _array(stream, member.file_size, path, member.filename),
                )
    return table_of_tree(tree, path, "NPZ")


def read_npy(path: Path, drop_bad_rows: bool = False) -> Table:
    """Fields of one structured array."""
    with readable("NPY file", path), path.open("rb") as stream:
        records = _array(stream, size_of(path), path, path.name)
    names = records.dtype.names
    if names is None:
        raise InputError(
            f"one array of shape {records.shape} without column names",
            file=path,
            remedy="save named arrays: numpy.savez(file, t=t, q=q, tau=tau)",
        )
    return table_of_tree({name: records[name] for name in names}, path, "NPY")


def _check_members(members: list[ZipInfo], path: Path) -> None:
    if len(members) > _MOST_MEMBERS:
        raise InputError(f"{len(members)} arrays in one file", file=path, remedy="save fewer arrays")
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts:
            raise InputError(
                f"the member '{member.filename}' leaves the archive", file=path, remedy="write the file again"
            )
    check_size(sum(member.file_size for member in members), size_of(path), path)


def _array(stream: Any, stored: int, path: Path, name: str) -> Any:
    """One array, if the size in its header is the size of its data."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"version {version} of the array format is not read", file=path, place=name)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise InputError(
            "the array contains Python objects, which are never loaded",
            file=path,
            place=f"array '{name.removesuffix('.npy')}'",
            remedy="save arrays of numbers: a.astype(float)",
        )
    declared = math.prod(int(size) for size in shape) * dtype.itemsize
    if not 0 <= declared <= stored:
        raise InputError(
            f"the header declares {declared} bytes, but only {stored} are stored",
            file=path,
            place=f"array '{name.removesuffix('.npy')}'",
            remedy="write the file again; the copy may be truncated",
        )
    data = stream.read(declared)
    if len(data) != declared:
        raise InputError("the data end too early", file=path, place=name, remedy="copy the file again")
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _place(tree: dict[str, Any], name: str, values: Any) -> None:
    """The array in the tree, or its content as text; a structured array is a group."""
    if values.dtype.names is not None:
        tree[name] = {field: values[field] for field in values.dtype.names}
    elif values.dtype.kind in "mM":
        tree[name] = numbers(values)
    elif values.dtype.kind in "biuf":
        tree[name] = values
    else:
        texts = [
            x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in values.ravel()[:999]
        ]
        tree[name] = Unread(texts[0] if texts else "", texts=tuple(texts) if values.ndim == 1 else ())
