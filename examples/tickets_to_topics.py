"""Support tickets in a data frame, one column per level: train, save, load, predict, explain.

A frame of pandas, polars or pyarrow will do, the taxonomy is made from the paths in it, and the
saved model takes plain texts.
"""

import tempfile
from pathlib import Path

import pandas as pd

from taxofit import TaxonomyClassifier, load_model
from taxofit.datasets import from_frame

TOPICS = {
    ("Account", "Password"): ["forgot my password", "reset the password", "login code missing"],
    ("Account", "Invoices"): ["invoice for march", "wrong amount on invoice", "change billing"],
    ("Delivery", "Late"): ["parcel is late", "where is my parcel", "order has not arrived"],
    ("Delivery", "Damaged"): ["box arrived damaged", "broken parcel", "glass was broken"],
}
PEOPLE = ("hello, ", "please help: ", "urgent! ", "second time: ")
tickets = pd.DataFrame(
    [
        {"text": person + text, "area": area, "topic": topic}
        for (area, topic), texts in TOPICS.items()
        for text in texts
        for person in PEOPLE
    ]
)

data = from_frame(tickets, text="text", levels=["area", "topic"])
print(data.taxonomy)
model = TaxonomyClassifier(data.taxonomy, flattening="td-lr", C=10.0, encoder="words")
model.fit(data.X, data.y)

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder, "tickets"))
    loaded = load_model(Path(folder, "tickets"))

questions = ["my parcel never arrived", "cannot log in, password does not work"]
for question, topic, score in zip(questions, *loaded.predict_with_score(questions), strict=True):
    path = " > ".join(loaded.original_taxonomy_.path_of(topic))
    print(f"{question!r} goes to {path} ({score:.0%} sure)")

terms = loaded.encoder_.get_feature_names_out()
weights, _ = loaded.node_coef("Late")
print("'Late' is spoken of with:", ", ".join(terms[weights.argsort()[::-1][:4]]))
