"""`dynid export`: a result in the formats of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from dynid.commands.shared import shown


@click.command(short_help="Write a result in the format of another program.")
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--to", "formats", multiple=True, required=True, metavar="FORMAT", help="Format; repeatable.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder [default: that of RESULT]."
)
@click.option("--robot", help="Instead of the robot named in the result.")
def export(result: Path, formats: tuple[str, ...], out: Path | None, robot: str | None) -> None:
    """Write RESULT (result.json or its folder) in the formats that installed packages provide."""
    from dynid.export import export_result

    folder = out or (result if result.is_dir() else result.parent)
    for file in export_result(result, formats, folder, robot):
        click.echo(f"written: {shown(file)}")
