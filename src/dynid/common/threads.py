"""Threads: dynid runs blocks of samples side by side, so BLAS must not add its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Small triangular factors gain nothing from BLAS threads and wait for each other: on a busy
    machine with two cores an identification took twelve times as long with them."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
