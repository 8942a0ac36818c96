"""Building blocks of HTML pages: templates, in which everything is escaped, and scripts of our own.

Compiled templates kept beside their sources, as Python keeps compiled modules in `__pycache__`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import marshal
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

from dynid.base.grouping import probability
from dynid.common.audience import for_python
from dynid.common.catalogue import CATALOGUE, MEANING
from dynid.report.numbers import (
    grouping_text,
    interval_text,
    number,
    percent,
    sigma_text,
    unit_text,
    value_text,
)
from dynid.report.words import explained, named
from dynid.statistics.uncertainty import half95

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


_HIGH = 16  # rows of a table that fit into its window
_LONG = 360  # characters of a reason that are shown without unfolding


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        bytecode_cache=CompiledTemplates(),
        loader=PackageLoader("dynid.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "probability": lambda p: probability(p).removeprefix("= "),
        "value": value_text,
        "interval": interval_text,
        "sigma": sigma_text,
        "in_python": for_python,
        "half95": lambda parameter: float(half95(parameter.sigma or 0.0, [parameter])),
        "grouping": lambda text, name: grouping_text(name, text),
        "unit": unit_text,
        "ticked": ticked,
        "opening": opening,
        "explained": explained,
        "named": named,
        "spelled": spelled,
        "scrolled": scrolled,
        "breakable": breakable,
        "drawn": _verbatim,  # pictures of svg.py, which escapes all text
    }
    environment.globals |= {"meaning": MEANING}
    return environment


def render(template: str, **context: Any) -> Markup:
    """The rendered template; safe to include in another template."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(**context))  # noqa: S704 (escaped by jinja)


def ticked(text: str) -> Markup:
    """Escaped text in which words between backticks are code, and +- outside of them is one sign.

    No line ends within an option of a command.
    """
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return escape(text)
    code = [
        Markup("<code>{}</code>").format(_unbroken(part)) if i % 2 else escape(part.replace("+-", "±"))
        for i, part in enumerate(parts)
    ]
    return Markup("").join(code)


def _unbroken(command: str) -> Markup:
    from markupsafe import Markup, escape

    words = (
        Markup("<span>{}</span>").format(w) if w.startswith("--") else escape(w) for w in command.split(" ")
    )
    return Markup(" ").join(words)


def breakable(name: str) -> Markup:
    """An escaped name that may be broken after an underscore where a table is narrow."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in name.split("_"))


def opening(text: str) -> str:
    """The first statements of a long list of them; a text that is short enough is unchanged."""
    if len(text) <= _LONG:
        return text
    cut = max(text.rfind(mark, 0, _LONG) for mark in ("; ", ", ", " "))
    return text[:cut] if cut > 0 else text[:_LONG]


def spelled(code: str) -> str:
    """A code of a warning with its meaning: `gap (samples are missing)`; an unknown one as it is."""
    meaning = CATALOGUE[code].meaning if code in CATALOGUE else ""
    words = re.split(r"[:;]|\. ", meaning)[0]
    return f"{code} ({words})" if words else code


def scrolled(rows: int) -> Markup:
    """Words for the caption of a table that may be higher than its window."""
    from markupsafe import Markup

    more = f' <span class="screen">({rows} rows; scroll)</span>' if rows > _HIGH else ""
    return Markup(more)  # noqa: S704 (a number)


def source(template: str) -> str:
    """The unchanged text of a style sheet or script."""
    environment = _environment()
    assert environment.loader is not None  # noqa: S101 (given above)
    return environment.loader.get_source(environment, template)[0]


def script_json(value: Any) -> Markup:
    """`value` as JSON for a script element: no character in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes all but ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (made harmless above)


def scripted_page(template: str, scripts: tuple[str, ...], *, served: bool = False, **context: Any) -> str:
    """A page with plots, and with further scripts of ours; nothing else runs, and nothing is downloaded.

    Args:
        template, scripts, context: Of the page.
        served: Whether it may ask the server that it comes from, and show other pages of it.
    """
    everything = tuple(_lean(source(name)) for name in ("plots.js", *scripts, "page.js"))
    page = render(
        template,
        **context,
        style=_verbatim(_lean(source("style.css"))),
        scripts=[_verbatim(script) for script in everything],
        policy=_policy(everything) + ("; connect-src 'self'; frame-src 'self'" if served else ""),
    )
    return str(page)


def _lean(text: str) -> str:
    """A script or style sheet without indentation and lines of comment: every page carries it."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _policy(scripts: tuple[str, ...]) -> str:
    """Content security policy: only our own scripts run, and nothing is fetched."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _verbatim(text: str) -> Markup:
    """Our own style sheet, scripts and pictures; never used for text of a result."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


@dataclass(frozen=True)
class Section:
    """One part of the page: `anchor` for links, `title` for the contents, `body` escaped HTML.

    Attributes:
        folded: Whether it is closed when the page is opened.
        unprinted: Whether it stays closed in print.
        note: A few words beside the title.
    """

    anchor: str
    title: str
    body: Markup
    folded: bool = False
    note: str = ""
    unprinted: bool = False


_FOLDER = Path(__file__).parent / "templates" / "__pycache__"


class CompiledTemplates(BytecodeCache):
    """Valid for one version of Python, of Jinja and of the template's text; never required."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """The code of a template, if it was compiled from this text."""
        stamp = _stamp(bucket)
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            data = _file(bucket).read_bytes()
            if data.startswith(stamp):
                bucket.code = marshal.loads(data[len(stamp) :])  # noqa: S302 (trusted like a .pyc file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code, if the folder is writable."""
        if sys.dont_write_bytecode or bucket.code is None:
            return
        file = _file(bucket)
        part = file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            _FOLDER.mkdir(exist_ok=True)
            part.write_bytes(_stamp(bucket) + marshal.dumps(bucket.code))
            part.replace(file)


def _file(bucket: Bucket) -> Path:
    return _FOLDER / f"{bucket.key}.{sys.implementation.cache_tag}"


def _stamp(bucket: Bucket) -> bytes:
    return f"dynid {sys.version} jinja {jinja2.__version__} {bucket.checksum}\n".encode()
