"""`dynid studio`: a page on this computer."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import click

from dynid.commands.completion import ROBOT
from dynid.commands.shared import Whole

_HIGHEST_PORT = 65535


@click.command(short_help="A page on this computer: load, check, identify, compare, export.")
@click.argument("robot", required=False, type=ROBOT)
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@click.option(
    "--port", type=Whole(min=0, max=_HIGHEST_PORT), default=0, show_default=True, help="0: any that is free."
)
@click.option("--open", "opened", is_flag=True, help="Open the page in the default browser.")
def studio(robot: str | None, logs: tuple[str, ...], port: int, opened: bool) -> None:
    """Serve a page, for this computer only, at an address with a secret token; Ctrl-C ends it.

    ROBOT may be an experiment file. Experiment files and results are written into the current folder.
    """
    from dynid.studio.server import Studio
    from dynid.studio.session import Session

    session = Session(Path.cwd())
    with contextlib.closing(Studio(session, port)) as server:
        if robot is not None:
            session.load(robot, logs)
        click.echo(f"open {server.address}\nonly this computer can; Ctrl-C ends it")
        if opened:
            click.launch(server.address)
        with contextlib.suppress(KeyboardInterrupt):  # the usual end
            _end_as_by_ctrl_c("SIGTERM", "SIGHUP")  # a closed terminal stops what runs, too
            server.serve_forever()


def _end_as_by_ctrl_c(*names: str) -> None:
    """Signals that systems have, unless they are ignored, as under nohup."""
    for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
