"""Columns of names: log readers return numbers only, but tables of bodies also need the names."""

from __future__ import annotations

from pathlib import Path

from dynid.motion.parquet_file import parquet_texts
from dynid.motion.sniff import decode, sniff, split


def text_column(path: Path, name: str) -> list[str]:
    """Cells of one column of a file, as text, blanks at their ends removed."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return parquet_texts(path, name)
    text, _ = decode(path.read_bytes(), path)
    lines = text.split("\n")
    dialect = sniff(lines, path)
    place = dialect.names.index(name)
    body = (line for line in lines[dialect.header_line + 1 :] if line.strip())
    return [split(line, dialect.delimiter)[place] for line in body]
