"""Certificates of exported files, in the report of the result that they were made from.

They stand between two marks and do not count in the digest of the report: an export changes no result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dynid.report.output import write_file

REPORT = "report.html"
_BEGIN, _END = "<!-- exports -->", "<!-- end of exports -->"
_BLOCK = re.compile(f"(?<={_BEGIN}).*?(?={_END})", re.S)
_LINE = re.compile(r"<li><b>(.*?)</b>: (.*?)</li>", re.S)


def without_exports(page: str) -> str:
    """The report as it was written."""
    return _BLOCK.sub("", page, count=1)


def with_exports(page: str, certificates: Mapping[str, str]) -> str:
    """The report with a line per exported file; a file that was exported before has its new line.

    Args:
        page: Of a result; returned as it is if it has no place for them.
        certificates: Path of each file, as text -> its certificate in words.
    """
    from markupsafe import escape

    block = _BLOCK.search(page)
    if block is None:
        return page
    lines = dict(_LINE.findall(block[0]))
    lines |= {str(escape(file)): str(escape(text)) for file, text in certificates.items()}
    items = "".join(f"<li><b>{file}</b>: {text}</li>\n" for file, text in lines.items())
    head = f"Exported files, read back and compared ({len(lines)})"
    made = f'\n<details class="long"><summary>{head}</summary>\n<ul>\n{items}</ul></details>\n'
    return page[: block.start()] + made + page[block.end() :]


def add_exports(folder: Path, certificates: Mapping[str, str]) -> None:
    """Write certificates into the report of a folder; a report that cannot be written stays as it is."""
    file = folder / REPORT
    with suppress(OSError, UnicodeDecodeError):
        page = file.read_bytes().decode("utf-8")
        if (made := with_exports(page, certificates)) != page:
            write_file(file, made)
