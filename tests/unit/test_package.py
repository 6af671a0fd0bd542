from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import taxofit

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numba", "sklearn", "pandas", "scipy")


def modules_loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has after a statement."""
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        f"{statement}\n"
        "sys.stderr.write('\\n'.join({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.split())


def test_all_is_the_sorted_public_surface():
    assert taxofit.__all__ == sorted(taxofit.__all__)
    assert dir(taxofit) == taxofit.__all__
    for name in taxofit.__all__:
        assert getattr(taxofit, name) is not None


def test_the_contract_of_names_holds():
    from taxofit import Taxonomy, TaxonomyClassifier, load_model
    from taxofit.flattening import (
        FlattenAll,
        FlattenLevels,
        GlobalINF,
        KeepAll,
        LevelINF,
        MaxMargin,
    )
    from taxofit.metrics import hierarchical_f1, macro_f1, micro_f1, tree_error
    from taxofit.significance import sign_test, wilcoxon_test

    named = [
        Taxonomy,
        TaxonomyClassifier,
        load_model,
        FlattenAll,
        FlattenLevels,
        GlobalINF,
        KeepAll,
    ]
    named += [LevelINF, MaxMargin, hierarchical_f1, macro_f1, micro_f1, tree_error]
    named += [sign_test, wilcoxon_test]
    assert all(callable(each) and each.__doc__ for each in named)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Taxonom'"):
        _ = taxofit.Taxonom


def test_importing_the_package_imports_nothing_heavy():
    assert not modules_loaded_by("import taxofit") & {*HEAVY, "numpy"}


def test_asking_for_help_imports_nothing_heavy():
    statement = (
        "import io; from taxofit.cli import main; sys.stdout = io.StringIO(); "
        "main(['--help']); main(['fit', '--help'])"
    )
    assert not modules_loaded_by(statement) & {*HEAVY, "numpy"}
