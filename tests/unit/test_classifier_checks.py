"""scikit-learn's own checks of what an estimator must do."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from taxofit import TaxonomyClassifier


@parametrize_with_checks(
    [
        TaxonomyClassifier(),
        TaxonomyClassifier(flattening="td-lr", C=1.0),
        TaxonomyClassifier(flattening="lr", C=1.0, prune="none"),
    ]
)
def test_estimator_keeps_the_rules_of_scikit_learn(estimator, check):
    check(estimator)
