"""Importing takes no time and loads nothing; the command is there."""

import subprocess
import sys
import time

import pytest

import reprior


def test_import_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; import reprior; "
        "heavy = {'sklearn', 'torch', 'pandas', 'xarray', 'zarr', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; assert reprior.__version__"
    )
    bare, own = [], []
    for _ in range(5):
        for times, text in ((bare, "pass"), (own, code)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", text], check=True)
            times.append(time.perf_counter() - start)
    assert min(own) - min(bare) < 0.150, (min(own), min(bare))


def test_every_name_is_there():
    for name in reprior.__all__:
        assert getattr(reprior, name) is not None
    assert set(reprior.__all__) <= set(dir(reprior))
    # modules of their own need no import of their own
    code = "import reprior; reprior.torch.Laplace; reprior.distributed.sample"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nothing"):
        _ = reprior.nothing


def _command(*arguments, **keywords):
    from pathlib import Path

    command = Path(sys.executable).with_name("reprior")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False, **keywords)


def test_the_wheel_brings_the_command(tmp_path):
    assert reprior.__version__ in _command("--version").stdout
    wrong = _command("sample", "--data", "nowhere.csv", cwd=tmp_path)
    assert wrong.returncode == 2 and "`nowhere.csv` does not exist" in wrong.stderr
    flags = ("--network", "fcn:8", "--chains", "1", "--warmup", "5", "--draws", "5", "--out", "run", "--quiet")
    made = _command("sample", "--data", "friedman", "--train", "30", "--test", "10", *flags, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert reprior.open(tmp_path / "run").summary().draws == 5
