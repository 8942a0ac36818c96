"""Reader of HDF5 files and of MATLAB 7.3 files, which are HDF5 with transposed arrays and references.

Nothing outside the file is opened: external links, external storage and virtual data sets are refused, and
so are filters that HDF5 would load from a library.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.mat_file import matlab_table
from dynid.motion.reading import check_size, extra, readable, size_of
from dynid.motion.series import Unread, table_of_tree
from dynid.motion.table import Table

_DEEPEST = 20
_MOST_OBJECTS = 20_000
_BUILT_IN = {1, 2, 3, 4, 5, 6, 32000}  # deflate, shuffle, fletcher32, szip, nbit, scale-offset, lzf
_MATLAB_NUMBERS = {"double", "single", "logical", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))}


def read_hdf5(path: Path, drop_bad_rows: bool = False) -> Table:
    """Data sets of all groups: `group/name`; (n, k) becomes `name_1`, .."""
    with _opened(path) as file:
        tree = _Walk(path, file).group(file, 0)
    return table_of_tree(tree, path, "HDF5")


def read_mat73(path: Path, drop_bad_rows: bool = False) -> Table:
    """Variables of a MATLAB 7.3 file."""
    with _opened(path) as file:
        tree = _MatlabWalk(path, file).group(file, 0)
    return matlab_table(tree, path, "MATLAB 7.3")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, in a block whose library errors become input errors."""
    with extra("hdf5", "HDF5", path):
        import h5py
    with readable("HDF5 file", path), h5py.File(path, "r", locking=False) as file:
        yield file


class _Walk:
    """Groups as mappings, data sets as arrays or texts."""

    def __init__(self, path: Path, file: Any) -> None:
        import h5py

        self.path, self.file, self.h5py = path, file, h5py
        self.stored, self.declared, self.count = size_of(path), 0.0, 0

    def group(self, group: Any, depth: int) -> dict[str, Any]:
        """Members of a group, by name."""
        if depth > _DEEPEST:
            raise self.error(f"groups are nested deeper than {_DEEPEST}", group.name)
        return {name: self.member(one, depth) for name, one in self.members(group)}

    def members(self, group: Any) -> Iterator[tuple[str, Any]]:
        """Names and objects inside the file; soft links are left out, as their target has its own place."""
        for name in group:
            self.count += 1
            if self.count > _MOST_OBJECTS:
                raise self.error(f"more than {_MOST_OBJECTS} objects", group.name)
            link = group.get(name, getlink=True)
            if isinstance(link, self.h5py.ExternalLink):
                raise self.error(
                    f"a link to another file, '{link.filename}', is not followed", f"{group.name}/{name}"
                )
            if isinstance(link, self.h5py.HardLink):
                yield name, group[name]

    def member(self, one: Any, depth: int) -> Any:
        """A group or a data set."""
        if isinstance(one, self.h5py.Group):
            return self.group(one, depth + 1)
        if not isinstance(one, self.h5py.Dataset):
            return Unread(words="a type")
        return self.dataset(one)

    def dataset(self, one: Any) -> Any:
        """Numbers, fields of a compound type, or the first text."""
        self.check(one)
        if one.dtype.names is not None:
            data = one[()]
            return {name: _plain(data[name]) for name in one.dtype.names}
        if one.dtype.kind in "biuf":
            return np.asarray(one[()])
        if one.dtype.kind in "SO" and one.size and self.h5py.check_string_dtype(one.dtype) is not None:
            first = one[(0,) * one.ndim]
            return Unread(first.decode("utf-8", errors="replace") if isinstance(first, bytes) else str(first))
        return Unread(words=f"data of type {one.dtype}")

    def check(self, one: Any) -> None:
        """Refuse data outside the file, foreign filters, and sizes beyond reason."""
        if one.is_virtual or one.external:
            raise self.error("data stored in other files are not read", one.name)
        created = one.id.get_create_plist()
        filters = {created.get_filter(i)[0] for i in range(created.get_nfilters())}
        if not filters <= _BUILT_IN:
            raise self.error(f"the filter {min(filters - _BUILT_IN)} would load a library", one.name)
        if one.size is not None:
            self.declared += float(one.size) * one.dtype.itemsize
            check_size(self.declared, self.stored, self.path)

    def error(self, text: str, place: str) -> InputError:
        """An error at an object of the file."""
        return InputError(
            text, file=self.path, place=place, remedy="copy the data into one plain file (h5repack)"
        )


class _MatlabWalk(_Walk):
    """Arrays are transposed, structs are groups, cells and arrays of structs are references."""

    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(path, file)
        self.depth = 0

    def members(self, group: Any) -> Iterator[tuple[str, Any]]:
        """Without the groups that hold the targets of references and the content of objects."""
        return ((name, one) for name, one in super().members(group) if not name.startswith("#"))

    def dataset(self, one: Any) -> Any:
        """The value of a variable, by its MATLAB class."""
        kind = one.attrs.get("MATLAB_class", b"double")
        kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
        self.check(one)
        if "MATLAB_object_decode" in one.attrs or kind not in {*_MATLAB_NUMBERS, "char", "cell", "struct"}:
            return Unread(words=f"an object of class {kind}", object_class=kind)
        if "MATLAB_empty" in one.attrs:
            return np.zeros(0)
        data = one[()]
        if one.dtype == self.h5py.ref_dtype:
            return [self._target(reference) for reference in np.ravel(data, order="F")]
        if kind == "char":
            return Unread("".join(chr(int(code)) for code in np.ravel(data.T, order="F")[:200]))
        return (
            np.asarray(data).T
            if np.asarray(data).dtype.kind in "biuf"
            else Unread(words=f"data of type {one.dtype}")
        )

    def group(self, group: Any, depth: int) -> Any:
        """A struct; an array of structs has references in each field."""
        found = super().group(group, depth)
        lists = [value for value in found.values() if isinstance(value, list)]
        if depth and lists and len(lists) == len(found) and len({len(one) for one in lists}) == 1:
            return [dict(zip(found, row, strict=True)) for row in zip(*lists, strict=True)]
        return found

    def _target(self, reference: Any) -> Any:
        self.depth += 1
        self.count += 1
        if self.depth > _DEEPEST or self.count > _MOST_OBJECTS or not reference:
            raise self.error("references are nested too deep or lead nowhere", "#refs#")
        try:
            return self.member(self.file[reference], self.depth)
        finally:
            self.depth -= 1


def _plain(values: Any) -> Any:
    return np.asarray(values) if values.dtype.kind in "biuf" else Unread(words=f"data of type {values.dtype}")
