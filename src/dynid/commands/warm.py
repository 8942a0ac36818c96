"""`dynid warm`: compile all kernels ahead of their first use."""

from __future__ import annotations

import os

import click


@click.command(short_help="Compile all kernels ahead of their first use.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes [default: all cores].")
def warm(jobs: int | None) -> None:
    """Compile every kernel of dynid for this machine, once after an installation or upgrade.

    Without it, each kernel is compiled when a command first needs it. An image for several machines of the
    same kind is built with it.
    """
    from dynid.simulation.warm import warm as run

    for task in run(jobs or os.cpu_count() or 1):
        click.echo(f"compiled: {task}")
