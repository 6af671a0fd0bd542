"""Find the nodes that the data contradicts, in a shop with 'Gifts' and 'Clearance' in its tree.

The catalogue is made up, so the truth is known: four categories were planted to sell things, not to
group them. The classifier is not told. It scores every node on rows that it held out, removes those
that stand out, and says why.
"""

import numpy as np

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue
from taxofit.metrics import evaluate

shop = make_shop_catalogue(2000)
data = shop.dataset
order = np.random.default_rng(0).permutation(data.n_rows)
test, train = data.subset(order[:500]), data.subset(order[500:])

for flattening in ("td-lr", "global-inf"):
    model = TaxonomyClassifier(data.taxonomy, flattening=flattening, encoder="words")
    model.fit(train.X, train.y)
    scores = evaluate(test.y, model.predict(test.X), data.taxonomy, classes=train.y)
    print(f"{flattening:>10}: {scores['micro_f1']:.1%} of the rows right, C = {model.C_:g}")

print(f"\nRemoved {len(model.removed_)} nodes; the most contradicted ones:")
removed = model.evidence_.query("removed").nlargest(6, "objective")
for node in removed.itertuples():
    truth = "planted" if node.label in shop.inconsistent else "drawn in good faith"
    print(f"  {node.label:<15} {truth:<20} {node.why}")
