"""Reader of HDF5 files and of MATLAB 7.3 files, which are HDF5 with transposed arrays and references.

Nothing outside the file is opened: external links, external storage and virtual data sets are refused, and
so are filters that HDF5 would load from a library.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.mat_file import matlab_table
from dynid.motion.mat_objects import Reference, resolved
from dynid.motion.reading import check_size, extra, readable, size_of
from dynid.motion.series import Unread, table_of_tree
from dynid.motion.table import Table

_DEEPEST = 20
_MOST_OBJECTS = 20_000
_MOST_TEXTS = 1000
_LARGEST_HEAP = 1 << 20  # bytes
_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_BUILT_IN = {_DEFLATE, _SHUFFLE, _FLETCHER, 4, 5, 6, 32000}  # szip, nbit, scale-offset, lzf
_MATLAB_NUMBERS = {"double", "single", "logical", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))}


def read_hdf5(path: Path, drop_bad_rows: bool = False) -> Table:
    """Data sets of all groups: `group/name`; (n, k) becomes `name_1`, .."""
    with _opened(path) as file:
        tree = _Walk(path, file).group(file, 0)
    return table_of_tree(tree, path, "HDF5")


def read_mat73(path: Path) -> Table:
    """Variables of a MATLAB 7.3 file."""
    with _opened(path) as file:
        walk = _MatlabWalk(path, file)
        tree = resolved(walk.group(file, 0), walk.wrapper())
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
        return {name: self.member(node, depth) for name, node in self.members(group)}

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

    def member(self, node: Any, depth: int) -> Any:
        """A group or a data set."""
        if isinstance(node, self.h5py.Group):
            return self.group(node, depth + 1)
        if not isinstance(node, self.h5py.Dataset):
            return Unread(words="a type")
        return self.dataset(node)

    def dataset(self, node: Any) -> Any:
        """Numbers, fields of a compound type, or the first text."""
        self.check(node)
        if node.dtype.names is not None:
            data = self.data(node)
            return {name: _plain(data[name]) for name in node.dtype.names}
        if node.dtype.kind in "biuf":
            return self.data(node)
        if self.h5py.check_string_dtype(node.dtype) is not None:
            if node.dtype.kind == "O" or not node.size:  # HDF5 may not return from a damaged heap of texts
                return Unread(words="text", texts=self._heap_texts(node))
            if node.ndim != 1 or node.size > _MOST_TEXTS:
                return Unread(bytes(np.ravel(node[(0,) * node.ndim])[0]).decode("utf-8", errors="replace"))
            texts = tuple(bytes(x).decode("utf-8", errors="replace") for x in node[()])
            return Unread(texts[0], texts=texts)
        return Unread(words=f"data of type {node.dtype}")

    def _heap_texts(self, node: Any) -> tuple[str, ...]:
        """A short list of texts of any length, as h5py writes `joint_names`; empty: it is stored otherwise.

        A cell has the number of bytes, the address of a heap, and a number there.
        """
        start = node.id.get_offset()
        sizes = self.file.id.get_create_plist().get_sizes()
        if start is None or node.ndim != 1 or not 0 < node.size <= _MOST_TEXTS or tuple(sizes) != (8, 8):
            return ()
        with self.path.open("rb") as file:
            file.seek(start)
            raw = file.read(16 * node.size)
            cells = np.frombuffer(raw[: len(raw) // 16 * 16], [("n", "<u4"), ("heap", "<u8"), ("k", "<u4")])
            heaps = {
                int(at): _heap(file, int(at) + self.file.userblock_size)
                for at in np.unique(cells["heap"])[:10]
            }
        texts = [heaps.get(int(cell["heap"]), {}).get(int(cell["k"]), b"")[: cell["n"]] for cell in cells]
        return tuple(text.decode("utf-8", errors="replace") for text in texts) if all(texts) else ()

    def check(self, node: Any) -> None:
        """Refuse data outside the file, foreign filters, and sizes beyond reason."""
        if node.is_virtual or node.external:
            raise self.error("data stored in other files are not read", node.name)
        filters = set(self._filters(node))
        if not filters <= _BUILT_IN:
            raise self.error(f"the filter {min(filters - _BUILT_IN)} would load a library", node.name)
        if node.size is not None:  # a chunk is decompressed whole, also outside the data
            values = max(float(node.size), math.prod(map(float, node.chunks or ())))
            self.declared += values * node.dtype.itemsize
            check_size(self.declared, self.stored, self.path)

    def data(self, node: Any) -> Any:
        """Values of a data set; chunks compressed by deflate are decompressed here.

        HDF5 does not return from a chunk whose compressed data end too early.
        """
        filters = self._filters(node)
        if _DEFLATE not in filters:
            return np.asarray(node[()])
        native = node.id.get_type().equal(self.h5py.h5t.py_create(node.dtype))
        if not native or not set(filters) <= {_DEFLATE, _SHUFFLE, _FLETCHER}:
            raise self.error("this combination of type and filters is not read", node.name)
        values = np.full(node.shape, node.fillvalue, dtype=node.dtype)
        for i in range(node.id.get_num_chunks()):
            corner = node.id.get_chunk_info(i).chunk_offset
            masked, raw = node.id.read_direct_chunk(corner)
            chunk = self._unfiltered(raw, [f for k, f in enumerate(filters) if not masked >> k & 1], node)
            place = tuple(slice(at, at + size) for at, size in zip(corner, node.chunks, strict=True))
            part = values[place]
            part[...] = chunk[tuple(slice(size) for size in part.shape)]
        return values

    def _filters(self, node: Any) -> list[int]:
        created = node.id.get_create_plist()
        return [created.get_filter(i)[0] for i in range(created.get_nfilters())]

    def _unfiltered(self, raw: bytes, filters: list[int], node: Any) -> Any:
        """One chunk, its filters undone from the last to the first."""
        size = int(np.prod(node.chunks)) * node.dtype.itemsize
        for kind in reversed(filters):
            if kind == _FLETCHER:
                raw, stored = raw[:-4], int.from_bytes(raw[-4:], "little")
                if not _matches(raw, stored):
                    raise self.error("damaged: a checksum does not match", node.name)
            elif kind == _DEFLATE:
                raw = zlib.decompressobj().decompress(raw, size + 4)
            else:
                whole = len(raw) // node.dtype.itemsize * node.dtype.itemsize
                bytes_of = np.frombuffer(raw[:whole], np.uint8).reshape(node.dtype.itemsize, -1)
                raw = bytes_of.T.tobytes() + raw[whole:]
        if len(raw) != size:
            raise self.error(f"damaged: a chunk has {len(raw)} bytes instead of {size}", node.name)
        return np.frombuffer(raw, node.dtype).reshape(node.chunks)

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
        return ((name, node) for name, node in super().members(group) if not name.startswith("#"))

    def wrapper(self) -> Any:
        """Cells with the content of objects; None if there are none."""
        hidden = self.file.get("#subsystem#/MCOS")
        if not isinstance(hidden, self.h5py.Dataset) or hidden.dtype != self.h5py.ref_dtype:
            return None
        self.check(hidden)
        return [self._target(reference) for reference in np.ravel(hidden[()])]

    def dataset(self, node: Any) -> Any:
        """The value of a variable, by its MATLAB class."""
        kind = "double"
        if "MATLAB_class" in node.attrs and node.attrs.get_id("MATLAB_class").dtype.kind == "S":
            kind = bytes(node.attrs["MATLAB_class"]).decode("latin-1")
        self.check(node)
        if "MATLAB_object_decode" in node.attrs or kind not in {*_MATLAB_NUMBERS, "char", "cell", "struct"}:
            return Reference(kind, self.data(node) if node.dtype.kind in "iu" else None)
        if "MATLAB_empty" in node.attrs:
            return np.zeros(0)
        if node.dtype == self.h5py.ref_dtype:
            return [self._target(reference) for reference in np.ravel(node[()], order="F")]
        data = self.data(node)
        if node.dtype.names == ("real", "imag"):
            return data["real"].T + 1j * data["imag"].T
        if kind == "char":
            return Unread("".join(chr(int(code)) for code in np.ravel(data.T, order="F")[:200]))
        return (
            np.asarray(data).T
            if np.asarray(data).dtype.kind in "biuf"
            else Unread(words=f"data of type {node.dtype}")
        )

    def group(self, group: Any, depth: int) -> Any:
        """A struct; an array of structs has references in each field."""
        members = super().group(group, depth)
        lists = [value for value in members.values() if isinstance(value, list)]
        if depth and lists and len(lists) == len(members) and len({len(column) for column in lists}) == 1:
            return [dict(zip(members, row, strict=True)) for row in zip(*lists, strict=True)]
        return members

    def _target(self, reference: Any) -> Any:
        self.depth += 1
        self.count += 1
        if self.depth > _DEEPEST or self.count > _MOST_OBJECTS or not reference:
            raise self.error("references are nested too deep or lead nowhere", "#refs#")
        try:
            return self.member(self.file[reference], self.depth)
        finally:
            self.depth -= 1


def _heap(file: Any, start: int) -> dict[int, bytes]:
    """Objects of a global heap by number: number, uses, size, and the data in steps of eight bytes."""
    if start > 2**62:
        return {}
    file.seek(start)
    head = file.read(16)
    data = file.read(min(int.from_bytes(head[8:], "little"), _LARGEST_HEAP)) if head[:4] == b"GCOL" else b""
    at, objects = 0, {}
    while at + 16 <= len(data) and (number := int.from_bytes(data[at : at + 2], "little")):
        size = int.from_bytes(data[at + 8 : at + 16], "little")
        objects[number] = data[at + 16 : at + 16 + size]
        at += 16 + size + -size % 8
    return objects


def _matches(data: bytes, stored: int) -> bool:
    """Whether a Fletcher checksum (sums of 16-bit words modulo 65535) belongs to the data."""
    words = np.frombuffer(data + b"\0" * (len(data) % 2), ">u2").astype(np.int64)
    weights = np.arange(len(words), 0, -1) % 65535
    sums = int(words.sum()) % 65535, int((words * weights % 65535).sum()) % 65535
    return sums == (stored % 65536 % 65535, (stored >> 16) % 65535)


def _plain(values: Any) -> Any:
    return np.asarray(values) if values.dtype.kind in "biuf" else Unread(words=f"data of type {values.dtype}")
