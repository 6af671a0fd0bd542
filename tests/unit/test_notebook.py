"""What a notebook shows of a classifier."""

import sklearn

from taxofit import Taxonomy, TaxonomyClassifier

ROWS = [[0.0, 1.0], [0.1, 1.2], [2.0, 0.1], [2.2, 0.0], [3.0, 3.1], [3.2, 3.0]]
LABELS = ["cat", "cat", "dog", "dog", "oak", "oak"]


def fitted(top="<b>animal</b>", flattening="tlf"):
    taxonomy = Taxonomy.from_paths([(top, "cat"), (top, "dog"), ("plant", "oak")])
    return TaxonomyClassifier(taxonomy, flattening=flattening, C=1.0).fit(ROWS, LABELS)


def test_a_fitted_classifier_shows_what_was_removed_with_labels_escaped():
    bundle = fitted()._repr_mimebundle_()
    assert "removed: &lt;b&gt;animal&lt;/b&gt;, plant" in bundle["text/html"]
    assert "<b>animal" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("TaxonomyClassifier(")
    assert fitted()._repr_html_() == bundle["text/html"]


def test_where_nothing_was_removed_it_says_so():
    assert "nothing removed" in fitted(flattening="td-lr")._repr_html_()


def test_an_unfitted_classifier_is_shown_by_scikit_learn():
    shown = TaxonomyClassifier()._repr_html_()
    assert "sk-top-container" in shown
    assert TaxonomyClassifier()._repr_mimebundle_()["text/html"]


def test_plain_text_is_respected():
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted(), "_repr_html_")
        assert set(fitted()._repr_mimebundle_()) == {"text/plain"}
