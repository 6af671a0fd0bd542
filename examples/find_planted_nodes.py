"""Plant bad nodes in random taxonomies and count how many are found.

In each problem rows come from a hidden concept tree, and the taxonomy that the classifier gets is
that tree with some nodes whose children belong elsewhere. Precision and recall of the removed nodes
say how far to trust a repair on data of this kind.
"""

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_taxonomy_classification

print("seed  planted  removed  found")
n_planted = n_removed = n_found = 0
for seed in range(3):
    problem = make_taxonomy_classification(
        1500, fan_out=(5, 4, 3), n_features=600, n_inconsistent=4, random_state=seed
    )
    model = TaxonomyClassifier(problem.taxonomy, C=10.0).fit(problem.X, problem.y)
    planted, removed = set(problem.inconsistent), set(model.removed_)
    found = planted & removed
    print(f"{seed:>4}  {len(planted):>7}  {len(removed):>7}  {len(found):>5}")
    n_planted += len(planted)
    n_removed += len(removed)
    n_found += len(found)

print(f"\nrecall {n_found / n_planted:.0%}, precision {n_found / max(n_removed, 1):.0%}")
