"""A campaign on logs of an S3 store: a server of moto on this machine, which worker processes reach too."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from dynid.campaign.campaign import run_campaign
from tests.workspace import make_workspace


def test_a_campaign_reads_new_changed_and_broken_logs_of_an_s3_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moto = pytest.importorskip("moto.server", reason="needs the packages moto[server] and s3fs")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        *(("AWS_ACCESS_KEY_ID", "user"), ("AWS_SECRET_ACCESS_KEY", "password")),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    try:
        workspace = make_workspace(tmp_path)
        log = (workspace / "log.csv").read_bytes()
        store = fsspec.filesystem("s3", skip_instance_cache=True)
        store.mkdir("robots")
        for place, content in (("a/2026-01", log), ("a/2026-02", log), ("b/2026-01", b"t,q_1\n0,broken\n")):
            store.pipe(f"robots/{place}.csv", content)
        (workspace / "fleet.yaml").write_text(
            "joined: true\nsettings: {auto: off, filter: {cutoff: 20, decimate: 4}}\n"
            "runs: [{robot: arm.yaml, logs: 's3://robots/{unit}/{date}.csv'}]\n"
        )
        new: list[str] = []

        def look() -> list[str]:
            new.clear()
            run_campaign(
                workspace / "fleet.yaml",
                workspace / "out",
                jobs=2,
                finished=lambda outcome: new.append(outcome.name),
            )
            return sorted(new)

        assert look() == ["arm-a-2026-01", "arm-a-2026-02", "arm-b-2026-01"]
        summary = json.loads((workspace / "out" / "summary.json").read_text())
        assert [one["logs"] for one in summary["results"]] == [
            ["s3://robots/a/2026-01.csv"],
            ["s3://robots/a/2026-02.csv"],
        ]
        (broken,) = summary["set_aside"]
        assert "s3://robots/b/2026-01.csv" in broken["reason"]
        assert summary["joined"][0]["runs"] == ["arm-a-2026-01", "arm-a-2026-02"]
        assert look() == []
        store.pipe("robots/a/2026-02.csv", log + b"\n")  # another version of the object
        store.pipe("robots/a/2026-03.csv", log)
        assert look() == ["arm-a-2026-02", "arm-a-2026-03"]
        store.rm("robots/a/2026-01.csv")  # archived: its result stays
        assert look() == []
        summary = json.loads((workspace / "out" / "summary.json").read_text())
        assert len(summary["results"]) == 3
    finally:
        server.stop()
