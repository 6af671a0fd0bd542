"""A model that people use all day gets better, and nobody has to wait for it.

In the morning there are 400 products to learn from, in the evening 2,000. The service runs on: it
sees that the folder holds another model, tries it, and takes it on between two requests.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np

from taxofit import TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue

shop = make_shop_catalogue(2500)
texts, labels = np.array(shop.texts), shop.y
test_texts, test_labels = texts[2000:].tolist(), labels[2000:].tolist()


def train(n_rows, folder):
    model = TaxonomyClassifier(shop.taxonomy, C=10.0, encoder="words")
    model.fit(texts[:n_rows], labels[:n_rows]).save(folder)


def ask(url, rows):
    body = json.dumps({"rows": rows}).encode()
    request = Request(f"{url}/v1/predict", body, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        told = json.load(answer)
    return told["model_version"], [each["label"] for each in told["predictions"]]


with tempfile.TemporaryDirectory() as home:
    folder = Path(home, "shop")
    train(400, folder)
    command = [sys.executable, "-m", "taxofit", "serve", str(folder), "--port", "0"]
    service = subprocess.Popen(
        [*command, "--reload-every", "0.2"], stderr=subprocess.PIPE, text=True
    )
    with service:
        url = re.search(r"http://\S+", service.stderr.readline())[0]
        morning, answers = ask(url, test_texts)
        print(f"morning, version {morning}: {np.mean(np.equal(answers, test_labels)):.0%} right")

        train(2000, folder)
        version, n_requests = morning, 0
        while version == morning:
            version, answers = ask(url, test_texts)
            n_requests += 1
            time.sleep(0.05)
        print(f"{n_requests} requests later, version {version} answers, and none has failed")
        print(f"evening: {np.mean(np.equal(answers, test_labels)):.0%} right")

        service.terminate()
        service.stderr.read()
    print(f"The service ended with exit code {service.returncode}")
