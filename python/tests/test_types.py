"""The package as a type checker sees it: the stubs are what the extension is, and a program that uses it is checked. Without mypy nothing is."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="the type checker is not installed")

PROGRAM = '''
from typing import assert_type

import numpy as np

import reprior

X, y = np.zeros((20, 2)), np.zeros(20)
run = reprior.sample(X, y, draws=10, wait=False)
assert_type(run, reprior.Run)
assert_type(run.wait(1.0), bool)
assert_type(run.summary().verdict.level, str)
assert_type(run.report(), str)
prediction = run.predict(X)
density = reprior.sample_density(lambda z: (-0.5 * float(z @ z), -z), 3)
assert_type(density, reprior.Density)
'''


def checked(*arguments, cwd):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_stubs_are_what_the_extension_is(tmp_path):
    code, said = checked("mypy.stubtest", "reprior._lib", "--concise", cwd=tmp_path)
    assert code == 0, said


def test_a_program_is_checked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    code, said = checked("mypy", "--strict", "program.py", cwd=tmp_path)
    assert code == 0, said
    program.write_text(PROGRAM.replace('draws=10, wait=False', 'wait="no"').replace("run.wait(1.0)", 'run.wait("soon")'))
    code, said = checked("mypy", "--strict", "program.py", cwd=tmp_path)
    assert code == 1 and said.count("arg-type") == 2, said
