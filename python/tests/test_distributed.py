"""Chains on many machines: the same bytes as in one program, workers that are killed, stores, sweeps, and the scheduling of a thousand chains in virtual time."""

import contextlib
import heapq
import json
import os
import random
import signal
import tempfile
import threading
from pathlib import Path

import distributed
import numpy as np
import pytest

import reprior
import reprior.distributed
from reprior.distributed import _dask
from reprior.distributed._chains import ATTEMPTS, WAITS, Ended, make_all
from reprior.distributed._store import Copy, Store


#: Numbers of what is kept are of each chain.
FAST = {"network": "fcn:8", "warmup": 20, "draws": 30, "noise": 0.3, "seed": 5}
#: How many workers are killed; REPRIOR_KILLS says how many by hand.
KILLS = int(os.environ.get("REPRIOR_KILLS", "3"))
#: Seconds between two kills: with many, time to start again and to get further.
BETWEEN = (0.2, 0.8) if KILLS <= 3 else (1.0, 4.0)
#: Seconds of work in each chain, so that there is time to kill.
LONG = {**FAST, "draws": 6_000 if KILLS <= 3 else 160_000, "thin": 1, "keep": 5, "keep_predictions": 5, "keep_log_likelihood": 0}


def table(rows=40):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1]


def lasting(folder):
    """The files of a run that do not hang on the clock, with their bytes."""
    timed = ("checkpoint", "summary.json")
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.name != ".lock")
    names = ((path.relative_to(folder).as_posix(), path) for path in files)
    return {name: path.read_bytes() for name, path in names if name.split("/")[0] not in timed}


def assert_same(one, other):
    one, other = lasting(one), lasting(other)
    assert one.keys() == other.keys() and len(one) > 20
    assert not [name for name in one if one[name] != other[name]]


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as own:
        yield own


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as own:
        yield own


@pytest.fixture
def threads():
    """A client whose workers are threads of this process."""
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as own:
        yield own


def test_the_run_is_that_of_one_program(client, tmp_path):
    X, y = table()
    kept = {"keep": 5, "keep_predictions": 5, "keep_log_likelihood": 10}
    seen = []
    run = reprior.distributed.sample(X, y, chains=3, client=client, out=tmp_path / "run", progress=seen.append, **FAST, **kept)
    reprior.sample(X, y, chains=3, out=tmp_path / "whole", progress=False, **FAST, **kept)
    assert_same(tmp_path / "run", tmp_path / "whole")
    # chains alone are not summarised, and their run is
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metrics"] == json.loads((tmp_path / "whole" / "summary.json").read_text())["metrics"]
    assert run.summary().chains == 3 and run.predict(X).mean.shape == (40,)
    assert seen and all(now.chains == 3 for now in seen)
    # the chains' own runs are gone
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "whole"]
    with pytest.raises(ValueError, match="holds a run already"):
        reprior.distributed.sample(X, y, client=client, out=tmp_path / "run", **FAST)


def test_images_are_those_of_one_program(threads, tmp_path):
    """Of images, too, a share tests that is chosen at random."""
    y = np.arange(30) // 15
    X = np.random.default_rng(0).normal(size=(30, 4, 4)) + y[:, None, None]
    fast = {"network": "fcn:4", "warmup": 10, "draws": 10, "thin": 1, "seed": 5}
    reprior.distributed.sample(X, y, chains=1, client=threads, out=tmp_path / "run", progress=False, **fast)
    reprior.sample(X, y, chains=1, out=tmp_path / "whole", progress=False, **fast)
    assert_same(tmp_path / "run", tmp_path / "whole")


def test_without_a_client_there_is_a_cluster_of_this_machine():
    X, y = table()
    run = reprior.distributed.sample(X, y, chains=2, progress=False, **FAST)
    assert run.folder is None and run.summary().chains == 2


def test_killed_workers_cost_no_bytes(cluster, client, tmp_path):
    X, y = table()
    found = {}

    def make():
        try:
            found["run"] = reprior.distributed.sample(
                X, y, chains=4, client=client, out=tmp_path / "run", checkpoint_seconds=0.1, progress=False, **LONG
            )
        except BaseException as error:
            found["error"] = error

    made = threading.Thread(target=make)
    made.start()
    chance, killed = random.Random(1), 0
    while made.is_alive():
        made.join(chance.uniform(*BETWEEN))
        # not asked of the workers: one that was just killed never answers; and one that is killed while it starts is not started again
        known = client.scheduler_info(n_workers=-1)["workers"]
        processes = sorted(nanny.pid for nanny in cluster.workers.values() if nanny.pid and nanny.process.status.name == "running" and nanny.worker_address in known)
        if made.is_alive() and processes and killed < KILLS:
            # one that is gone already is not one more
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(processes), signal.SIGKILL)
                killed += 1
        elif made.is_alive() and not known:
            # Dask gives up a worker that dies while it starts: who runs the cluster asks for another
            cluster.scale(2)
    assert "error" not in found, found
    assert killed == KILLS, f"the chains were done after {killed} kills"
    reprior.sample(X, y, chains=4, out=tmp_path / "whole", progress=False, **LONG)
    assert_same(tmp_path / "run", tmp_path / "whole")


def test_a_cluster_without_workers_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(_dask, "_COUNT_EVERY", 0.3)
    X, y = table()
    with distributed.LocalCluster(processes=False, n_workers=0, dashboard_address=":0") as cluster, distributed.Client(cluster) as own:
        more = threading.Timer(2.0, lambda: cluster.scale(1))
        more.start()
        with pytest.warns(RuntimeWarning, match="the cluster has no worker"):
            run = reprior.distributed.sample(X, y, chains=1, client=own, out=tmp_path / "run", progress=False, **FAST)
        more.join()
    assert run.summary().status == "complete"


def test_what_is_stopped_goes_on(client, tmp_path):
    X, y = table()

    def interrupt(now):
        if now.made > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        reprior.distributed.sample(X, y, chains=2, client=client, out=tmp_path / "run", progress=interrupt, **LONG)
    assert "the same call goes on" in stopped.value.__notes__[0]
    kept = list((tmp_path / "run-chains").rglob("checkpoint/*.safetensors"))
    assert kept and not (tmp_path / "run").exists()
    reprior.distributed.sample(X, y, chains=2, client=client, out=tmp_path / "run", progress=False, **LONG)
    reprior.sample(X, y, chains=2, out=tmp_path / "whole", progress=False, **LONG)
    assert_same(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("address", ["file://{}/store", "memory://{}/store"])
def test_files_come_back_from_a_store_as_they_were_sent(address, tmp_path):
    store = Store(address.format(tmp_path))
    here = tmp_path / "here"
    files = {"checkpoint/one": b"1", "draws/of/it": b"22", "empty": b""}
    for name, data in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(data)
    copy = Copy(store, here, "part")
    copy.push()
    (here / "empty").write_bytes(b"no longer")
    copy.push()
    there = tmp_path / "there"
    store.fetch("part", there)
    found = {path.relative_to(there).as_posix(): path.read_bytes() for path in there.rglob("*") if path.is_file()}
    assert found == {**files, "empty": b"no longer"}
    store.write("stop", b"")
    assert store.has("stop") and store.has("part/checkpoint") and not store.has("part/other")
    store.remove("part")
    assert not store.has("part") and store.has("stop")


def test_an_object_store_has_the_chains(threads, tmp_path):
    import fsspec

    X, y = table()
    kept = {"keep": 5, "keep_predictions": 5, "keep_log_likelihood": 10}
    out = "memory://bucket/run"
    run = reprior.distributed.sample(X, y, chains=2, client=threads, out=out, checkpoint_seconds=0.0, progress=False, **FAST, **kept)
    reprior.sample(X, y, chains=2, out=tmp_path / "whole", progress=False, **FAST, **kept)
    run.save(tmp_path / "run")
    assert_same(tmp_path / "run", tmp_path / "whole")
    files = fsspec.filesystem("memory")
    assert files.exists("/bucket/run/config.toml") and not files.exists("/bucket/run-chains")
    # a worker that was lost while it sent the first of its chain: there is no checkpoint, and not all that one would need
    files.pipe_file("/bucket/cut-chains/run/chain-00000/config.toml", (tmp_path / "whole" / "config.toml").read_bytes())
    run = reprior.distributed.sample(X, y, chains=2, client=threads, out="memory://bucket/cut", progress=False, **FAST, **kept)
    run.save(tmp_path / "cut")
    assert_same(tmp_path / "cut", tmp_path / "whole")

    # what is there when a chain is stopped is enough to go on
    def interrupt(now):
        if now.made > 0:
            raise KeyboardInterrupt

    out = "memory://bucket/other"
    with pytest.raises(KeyboardInterrupt):
        reprior.distributed.sample(X, y, chains=2, client=threads, out=out, checkpoint_seconds=0.1, progress=interrupt, **LONG)
    assert files.glob("/bucket/other-chains/run/*/checkpoint/*")
    run = reprior.distributed.sample(X, y, chains=2, client=threads, out=out, progress=False, **LONG)
    run.save(tmp_path / "other")
    reprior.sample(X, y, chains=2, out=tmp_path / "long", progress=False, **LONG)
    assert_same(tmp_path / "other", tmp_path / "long")


def test_a_chain_that_fails_is_named_and_the_others_are_kept(threads, tmp_path, monkeypatch):
    X, y = table()
    begun, tried = _dask._begun, []

    def failing(place, workplace, data, settings):
        if settings["first_chain"] == 1:
            tried.append(1)
            raise reprior.RunError("the disk is on fire")
        return begun(place, workplace, data, settings)

    monkeypatch.setattr(_dask, "_begun", failing)
    with pytest.raises(reprior.distributed.ChainsFailed, match="1 of 3 chains failed three times.*chain 1: the disk is on fire") as failed:
        reprior.distributed.sample(X, y, chains=3, client=threads, out=tmp_path / "run", progress=False, **FAST)
    assert len(tried) == ATTEMPTS and list(failed.value.failures) == [1]
    run = failed.value.run
    assert run.summary().chains == 2 and run.settings["run"]["chain-numbers"] == [0, 2]


def test_wrong_requests_are_refused(client, tmp_path):
    X, y = table()
    sample = reprior.distributed.sample
    for settings, kind, said in (
        ({"minutes": 1}, ValueError, "minutes is of chains that share a clock"),
        ({"first_chain": 2}, TypeError, "leave `first_chain` out"),
        ({"chains": 0}, ValueError, "chains is 0"),
        ({"network": "fcn:0"}, ValueError, "a width of the network"),
        ({"netwrok": "fcn:8"}, TypeError, "netwrok"),
    ):
        with pytest.raises(kind, match=said):
            sample(X, y, client=client, out=tmp_path / "run", progress=False, **{**FAST, **settings})
    with pytest.raises(ValueError, match="a folder that all workers see"):
        sample(X, y, client=client, **FAST)
    with pytest.raises(TypeError, match="no y"):
        sample(X, client=client, out=tmp_path / "run", **FAST)


def test_without_out_nothing_is_left_but_what_was_stopped(threads, tmp_path, monkeypatch):
    X, y = table()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reprior.distributed, "_connected", lambda client: contextlib.nullcontext(threads))
    # refused here, and by a worker
    for settings in ({"chains": 0}, {"network": "fcn:0"}):
        with pytest.raises(ValueError):
            reprior.distributed.sample(X, y, progress=False, **{**FAST, **settings})
        assert not list(tmp_path.glob("reprior-*"))

    def interrupt(now):
        if now.made > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        # long enough for a quick machine to be looked at before its end
        reprior.distributed.sample(X, y, chains=1, progress=interrupt, **{**LONG, "draws": 100_000})
    (place,) = tmp_path.glob("reprior-*")
    assert list(place.rglob("checkpoint/*.safetensors"))
    assert f"in {place}, and with `out` the same call would go on" in stopped.value.__notes__[0]


def test_a_sweep_has_a_run_for_every_point(client, tmp_path):
    X, y = table()
    grid = {"noise": [0.1, 0.5], "network": ["fcn:4", "fcn:0"]}
    own = {**FAST, "noise": None, "network": None}
    found = reprior.distributed.sweep(X, y, grid, chains=2, client=client, out=tmp_path / "sweep", progress=False, **own)
    assert [point.settings for point in found] == [{"noise": n, "network": w} for n in (0.1, 0.5) for w in ("fcn:4", "fcn:0")]
    assert [point.run is None for point in found] == [False, True, False, True]
    assert "a width of the network" in str(found[1].error) and len(found) == 4
    frame = found.to_frame()
    assert list(frame["noise"]) == [0.1, 0.1, 0.5, 0.5] and frame["rhat_max"].notna().sum() == 2
    assert reprior.open(tmp_path / "sweep" / "point-00002").settings["model"]["noise"] in (0.5, "0.5")
    with pytest.raises(ValueError, match="no points"):
        reprior.distributed.sweep(X, y, [], client=client, out=tmp_path / "none")


def test_a_point_of_a_sweep_has_its_own_chains(threads, tmp_path):
    X, y = table()
    fast = {"network": "fcn:4", "warmup": 10, "draws": 10, "thin": 1}
    found = reprior.distributed.sweep(X, y, [{"chains": 1}, {"seed": 2}], chains=2, client=threads, out=tmp_path / "sweep", progress=False, **fast)
    assert [point.run.summary().chains for point in found] == [1, 2]
    frame = found.to_frame()
    assert frame.columns.is_unique and list(frame["chains"]) == [1, 2]


def test_cross_validation_leaves_every_row_out_once(client, tmp_path):
    X, y = table(41)
    found = reprior.distributed.cross_validate(X, y, cv=3, chains=2, client=client, out=tmp_path / "cv", progress=False, **FAST)
    assert [run.settings["data"]["test"] for run in found.runs] == [14, 14, 13]
    assert all(len(values) == 3 for values in found.metrics.values())
    own = found.runs[0].summary().metrics
    assert found.metrics["rmse"][0] == own["rmse"] and found.standard_error["rmse"] > 0
    assert found.mean["rmse"] == pytest.approx(np.mean(found.metrics["rmse"]))
    for wrong in (1, 42, "five"):
        with pytest.raises(ValueError, match="cv is"):
            reprior.distributed.cross_validate(X, y, cv=wrong, client=client, out=tmp_path / "wrong")


def test_a_grid_search_over_dask_works_with_the_estimators(client):
    joblib = pytest.importorskip("joblib")
    from sklearn.model_selection import GridSearchCV

    X, y = table()
    model = reprior.BNNRegressor(hidden_layer_sizes=(4,), random_state=1, settings={"warmup": 20, "draws": 20})
    search = GridSearchCV(model, {"noise": [0.05, 0.5]}, cv=2)
    with joblib.parallel_backend("dask"):
        search.fit(X, y)
    alone = GridSearchCV(model, {"noise": [0.05, 0.5]}, cv=2).fit(X, y)
    assert np.allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


# the scheduling, without Dask


class Simulated:
    """Workers in virtual time: chains take as long as they take, workers are lost now and then, and what is lost is the time since the last checkpoint."""

    def __init__(self, durations, workers, *, mean_life, checkpoint=10.0, restart=60.0, noticed=30.0, seed=0):
        self.durations, self.checkpoint, self.restart, self.noticed = durations, checkpoint, restart, noticed
        self.random = random.Random(seed)
        self.mean_life, self.now = mean_life, 0.0
        self.done = {chain: 0.0 for chain in durations}
        self.waiting, self.events, self.order = [], [], 0
        self.free = list(range(workers))
        self.lost = 0
        self.useful = sum(durations.values())

    def submit(self, chain):
        self.waiting.append(chain)

    def _at(self, time, *event):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, event))

    def _start(self):
        while self.free and self.waiting:
            worker, chain = self.free.pop(), self.waiting.pop(0)
            life = self.random.expovariate(1 / self.mean_life)
            left = self.durations[chain] - self.done[chain]
            if life >= left:
                self._at(self.now + left, "ended", worker, chain)
            else:
                kept = self.checkpoint * ((self.done[chain] + life) // self.checkpoint)
                self.done[chain] = max(self.done[chain], kept)
                self.lost += 1
                self._at(self.now + life + self.restart, "back", worker)
                self._at(self.now + life + self.noticed, "died", chain)

    def wait(self):
        self._start()
        self.now, _, event = heapq.heappop(self.events)
        match event:
            case ("back", worker):
                self.free.append(worker)
            case ("ended", worker, chain):
                self.free.append(worker)
                self.done[chain] = self.durations[chain]
                return Ended(chain, made=int(self.done[chain]))
            case ("died", chain):
                return Ended(chain, error=RuntimeError("lost"), made=int(self.done[chain]))
        return None


def test_a_thousand_chains_on_a_hundred_workers_that_fail():
    chance = random.Random(3)
    durations = {chain: chance.uniform(1500, 2100) for chain in range(1000)}
    # one of the hundred every ten minutes; and each of them every ten minutes
    for mean_life, least in ((60_000.0, 0.9), (600.0, 0.75)):
        pool = Simulated(durations, 100, mean_life=mean_life)
        assert make_all(pool, durations) == {}
        assert pool.done == durations
        efficiency = pool.useful / (100 * pool.now)
        assert efficiency >= least, f"{efficiency:.3f} with {pool.lost} losses"
        print(f"mean life {mean_life:.0f} s: efficiency {efficiency:.3f}, {pool.lost} workers lost")


def test_only_chains_without_progress_fail():
    class Scripted:
        def __init__(self, ends):
            self.ends, self.ready = ends, []

        def submit(self, chain):
            self.ready.append(chain)

        def wait(self):
            chain = self.ready.pop(0)
            made, error, is_final, *has_begun = self.ends[chain].pop(0)
            return Ended(chain, error=error, made=made, is_final=is_final, has_begun=not has_begun)

    lost = RuntimeError("lost")
    ends = {
        "well": [(9, None, False)],
        "far": [(made, lost, False) for made in range(1, 9)] + [(9, None, False)],
        "stuck": [(3, lost, False), (3, lost, False), (2, lost, False), (3, lost, False)],
        "refused": [(0, ValueError("no"), True)],
        "behind others": [(0, lost, False, "waits")] * (WAITS - 1) + [(5, lost, False)] * 2 + [(5, None, False)],
        "never begun": [(0, lost, False, "waits")] * (WAITS + 1),
    }
    failed = make_all(Scripted(ends), list(ends))
    assert set(failed) == {"stuck", "refused", "never begun"} and len(ends["never begun"]) == 1 and ends["behind others"] == []
    assert ends["stuck"] == [(3, lost, False)] and ends["far"] == []
