"""Threads: dynid processes blocks of samples in parallel, so BLAS must not start its own threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Small triangular factors do not get faster with BLAS threads, which wait for each other: on a
    busy machine with two cores an identification took twelve times as long with them."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
