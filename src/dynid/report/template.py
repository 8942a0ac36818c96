"""The templates of the HTML report: everything is escaped except markup created here."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

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


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
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
