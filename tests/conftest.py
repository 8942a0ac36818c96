"""Shapes of every call are checked while tests run, but where the same calls repeat thousands of times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture(autouse=True)
def shapes_unchecked_where_calls_repeat(request: pytest.FixtureRequest) -> Iterator[None]:
    """Marked `repeated`: other tests check the shapes of the same functions, here it would only take time."""
    if request.node.get_closest_marker("repeated") is None:
        yield
        return
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)
