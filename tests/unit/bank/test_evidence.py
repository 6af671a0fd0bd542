import numpy as np
import pytest

from taxofit import TaxonomyClassifier
from taxofit.bank import evidence, solver
from taxofit.datasets import make_taxonomy_classification
from taxofit.datasets.mapped import is_mapped


@pytest.fixture(scope="module")
def data():
    return make_taxonomy_classification(1500, random_state=0)


def test_scores_in_files_choose_what_scores_in_memory_choose(data, monkeypatch):
    kept = TaxonomyClassifier(data.taxonomy, C=1.0).fit(data.X, data.y)
    monkeypatch.setattr(evidence, "available_memory", lambda: 1000.0)
    spilled = TaxonomyClassifier(data.taxonomy, C=1.0).fit(data.X, data.y)
    assert is_mapped(spilled.validation_.evidence.scores)
    assert not is_mapped(kept.validation_.evidence.scores)
    np.testing.assert_array_equal(
        spilled.validation_.evidence.scores, kept.validation_.evidence.scores
    )
    assert (spilled.C_, spilled.psi_, spilled.removed_) == (kept.C_, kept.psi_, kept.removed_)


def test_losses_do_not_depend_on_how_many_are_judged_at_a_time(data, monkeypatch):
    whole = TaxonomyClassifier(data.taxonomy, C=1.0, device="cpu").fit(data.X, data.y)
    monkeypatch.setattr(solver, "JUDGED_CELLS", 100)
    parts = TaxonomyClassifier(data.taxonomy, C=1.0, device="cpu").fit(data.X, data.y)
    np.testing.assert_allclose(
        parts.evidence_["objective"], whole.evidence_["objective"], rtol=1e-12
    )
