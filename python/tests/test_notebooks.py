"""The example notebooks run from their first cell to their last. With their outputs they go to the folder REPRIOR_NOTEBOOKS, if it is given."""

import os
from pathlib import Path

import pytest

pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    if path.stem == "torch":
        pytest.importorskip("torch")
    # the kernel's own, which puts figures into the outputs
    monkeypatch.delenv("MPLBACKEND", raising=False)
    # what a notebook writes goes to a copy of its surroundings
    here = tmp_path / "notebooks"
    here.mkdir()
    for table in (path.parents[1]).glob("*.csv"):
        os.symlink(table, tmp_path / table.name)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(here)}}).execute()
    if folder := os.environ.get("REPRIOR_NOTEBOOKS"):
        nbformat.write(notebook, Path(folder) / path.name)
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")
