"""Draws in an object store, over the network: a server that speaks S3's protocol (moto) on this machine, `reprior export`, and chains on a cluster of processes.

usage: check_s3.py PROGRAM      (a program built with `--features s3`; needs the package with `distributed`, s3fs and moto[server])
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr
from moto.server import ThreadedMotoServer

BUCKET = "draws"
SETTINGS = {"network": "fcn:8", "noise": 0.3, "warmup": 50, "draws": 100, "keep": 20, "keep_predictions": 20, "keep_log_likelihood": 10, "seed": 3}


def program(binary, *arguments, **more):
    environment = {**os.environ, **more}
    return subprocess.run([binary, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=300)


def same(one, other, where):
    """The draws of two stores are the same numbers."""
    for group in ("posterior", "sample_stats"):
        here, there = (xr.open_zarr(place, group=group, consolidated=False, **how) for place, how in (one, other))
        assert set(here.data_vars) == set(there.data_vars), f"{where}: {group} has {sorted(there.data_vars)}"
        for name in here.data_vars:
            assert np.array_equal(here[name].values, there[name].values, equal_nan=True), f"{where}: {group}/{name} differs"


def check_export(binary, place, options):
    run, address = place / "run", f"s3://{BUCKET}/exported.zarr"
    made = program(binary, "sample", "--data", place / "table.csv", "--target", "y", "--network", "fcn:8", "--noise", "0.3", "--warmup", 50, "--draws", 100, "--out", run, "--quiet")
    assert made.returncode == 0, made.stderr
    sent = program(binary, "export", run, "--to", address)
    assert sent.returncode == 0, sent.stderr
    print(sent.stdout.strip())
    same((run / "draws.zarr", {}), (address, {"storage_options": options}), "export")
    again = program(binary, "export", run, "--to", address)
    assert again.returncode == 2 and "--overwrite" in again.stderr, again.stderr
    over = program(binary, "export", run, "--to", address, "--overwrite")
    assert over.returncode == 0, over.stderr
    same((run / "draws.zarr", {}), (address, {"storage_options": options}), "export --overwrite")
    # what goes wrong is said, and soon
    start = time.monotonic()
    lost = program(binary, "export", run, "--to", "s3://no-such-bucket/run.zarr")
    assert lost.returncode not in (0, 101) and "there is no such bucket" in lost.stderr, lost
    print("no bucket:", lost.stderr.strip())
    deaf = program(binary, "export", run, "--to", address, AWS_ENDPOINT="http://127.0.0.1:9", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert deaf.returncode not in (0, 101), deaf
    print("no server:", deaf.stderr.strip())
    print(f"both said in {time.monotonic() - start:.0f} s")


def check_chains(place):
    import distributed

    import reprior
    import reprior.distributed

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    whole = reprior.sample(X, y, chains=4, out=place / "whole", progress=False, **SETTINGS)
    assert whole.summary().chains == 4

    def compare(run, name, whole):
        run.save(place / name)
        same((place / whole / "draws.zarr", {}), (place / name / "draws.zarr", {}), name)

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, distributed.Client(cluster) as client:
        run = reprior.distributed.sample(X, y, chains=4, client=client, out=f"s3://{BUCKET}/run", checkpoint_seconds=1.0, progress=False, **SETTINGS)
        compare(run, "chains", "whole")

        # stopped as soon as there is something, and gone on with
        def interrupt(now):
            if now.made > 0:
                raise KeyboardInterrupt

        long = {**SETTINGS, "warmup": 2000, "draws": 4000}
        out = f"s3://{BUCKET}/stopped"
        try:
            reprior.distributed.sample(X, y, chains=2, client=client, out=out, checkpoint_seconds=0.5, progress=interrupt, **long)
            raise AssertionError("it was not stopped")
        except KeyboardInterrupt:
            print("stopped")
        run = reprior.distributed.sample(X, y, chains=2, client=client, out=out, progress=False, **long)
        reprior.sample(X, y, chains=2, out=place / "long", progress=False, **long)
        compare(run, "gone-on", "long")

        # a worker that is killed while its chain is on the way
        killed = []

        def kill(now):
            if now.made > 0 and not killed:
                killed.append(next(iter(cluster.workers.values())).process.process.pid)
                os.kill(killed[0], signal.SIGKILL)

        run = reprior.distributed.sample(X, y, chains=2, client=client, out=f"s3://{BUCKET}/killed", checkpoint_seconds=0.5, progress=kill, **long)
        assert killed, "no worker was killed"
        compare(run, "killed", "long")
    print("chains on a cluster with their runs in an object store: the same numbers, whole, stopped and gone on with, and with a worker killed")


def main():
    # a line for each request
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    # of the server itself; workers inherit it
    os.environ.update(
        AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT=endpoint, AWS_ENDPOINT_URL=endpoint, AWS_ALLOW_HTTP="true",
    )
    import s3fs

    s3fs.S3FileSystem().mkdir(BUCKET)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = np.random.default_rng(0).normal(size=(60, 4))
        np.savetxt(place / "table.csv", rows, delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
        check_export(str(Path(sys.argv[1]).resolve()), place, {"endpoint_url": endpoint})
        check_chains(place)
    server.stop()


if __name__ == "__main__":
    main()
