"""Building blocks of HTML pages: templates, in which everything is escaped, and figures of plotly.js."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.catalogue import MEANING
from dynid.report.numbers import (
    grouping_text,
    interval_text,
    number,
    percent,
    sigma_text,
    unit_text,
    value_text,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, GRID, MUTED, PALE = "#1f2933", "#e3e8ee", "#52606d", "#b4c6d8"
# Okabe and Ito's palette: distinguishable with any colour vision, and in print by shape or weight.
BLUE, ORANGE, RED, GREEN, GREY = "#0072b2", "#e69f00", "#d55e00", "#009e73", "#8a94a0"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from dynid.report.compiled_templates import CompiledTemplates

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
        "value": value_text,
        "interval": interval_text,
        "sigma": sigma_text,
        "grouping": lambda text, name: grouping_text(name, text),
        "unit": unit_text,
    }
    environment.globals |= {"meaning": MEANING, "folded": False}
    return environment


def render(template: str, **context: Any) -> Markup:
    """The rendered template; safe to include in another template."""
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(**context))  # noqa: S704 (escaped by jinja)


def source(template: str) -> str:
    """The unchanged text of a style sheet or script."""
    environment = _environment()
    assert environment.loader is not None  # noqa: S101 (given above)
    return environment.loader.get_source(environment, template)[0]


def figure(
    anchor: str, data: Sequence[dict[str, Any]], layout: dict[str, Any], label: str, caption: str
) -> Markup:
    """The figure as HTML; `label` is its description for screen readers."""
    spec = {"data": list(data), "layout": _LAYOUT | layout}
    height = layout["height"]
    return render(
        "figure.html", anchor=anchor, spec=script_json(spec), height=height, label=label, caption=caption
    )


def script_json(value: Any) -> Markup:
    """`value` as JSON for a script element: no character in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes all but ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (made harmless above)


def plot_text(text: str) -> str:
    """A name escaped for plotly.js, which interprets tags in labels as formatting."""
    return html.escape(text, quote=False)


def packed(values: Float[Array, "n"]) -> dict[str, str]:
    """A series in single precision, four bytes per number; NaN interrupts the line."""
    raw = np.asarray(values, dtype="<f4").tobytes()
    return {"dtype": "f4", "bdata": base64.b64encode(raw).decode()}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis in the common style."""
    style: dict[str, Any] = {
        "gridcolor": GRID,
        "zerolinecolor": "#c3ccd6",
        "linecolor": "#c3ccd6",
        "ticks": "outside",
        "tickcolor": "#c3ccd6",
        "automargin": True,
        "title": {"text": plot_text(title), "standoff": 6, "font": {"size": 12, "color": MUTED}},
    }
    return style | more


_LAYOUT: dict[str, Any] = {
    "font": {"family": FONT, "size": 12, "color": INK},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "hovermode": "closest",
    "hoverlabel": {"namelength": -1},
    "margin": {"l": 60, "r": 16, "t": 40, "b": 48},
}


def scripted_page(template: str, scripts: tuple[str, ...], **context: Any) -> str:
    """A page with plotly.js and our own scripts inlined; nothing else runs, and nothing is downloaded."""
    from plotly.offline import get_plotlyjs

    everything = (get_plotlyjs(), *scripts)
    page = render(
        template,
        **context,
        style=page_style(),
        scripts=[_verbatim(script) for script in everything],
        policy=_policy(everything),
    )
    return str(page)


def page_style() -> Markup:
    """The style sheet of every page."""
    return _verbatim(source("style.css"))


def static_policy() -> str:
    """Content security policy of a page without scripts."""
    return "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _policy(scripts: tuple[str, ...]) -> str:
    """Content security policy: only our own scripts run, and nothing is fetched."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _verbatim(text: str) -> Markup:
    """Our own style sheet and scripts; never used for text of a result."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


@dataclass(frozen=True)
class Section:
    """One part of the page: `anchor` for links, `title` for the contents, `body` escaped HTML."""

    anchor: str
    title: str
    body: Markup
