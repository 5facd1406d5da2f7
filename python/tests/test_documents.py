"""The Python blocks of the README's first screen and of the book's page run as they stand."""

import os
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("path", "chosen"), [("README.md", slice(1)), ("docs/src/python.md", slice(None))])
def test_blocks_run(path, chosen):
    found = blocks(path)[chosen]
    assert found and "reprior" in found[0]
    names, before = {}, Path.cwd()
    os.chdir(ROOT)
    try:
        for block in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(block, path, "exec"), names)
    finally:
        os.chdir(before)
