"""A fit of a few seconds in many small blocks, run as a process of its own that tests may kill.

    python fit_that_is_killed.py MODEL [--work-dir DIR] [--largest-file BYTES]

Prints ``fitting`` when it begins and the number of solved blocks when it is done.
"""

import argparse
import resource

from taxofit import TaxonomyClassifier
from taxofit.bank import lanes
from taxofit.datasets.web_directory import make_web_directory

BLOCK_SIZE = 16


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--work-dir")
    parser.add_argument("--largest-file", type=int)
    arguments = parser.parse_args()
    lanes.BLOCK_SIZE = BLOCK_SIZE
    solved = []
    solve = lanes.LaneSolver.solve
    lanes.LaneSolver.solve = lambda *args: solved.append(1) or solve(*args)
    train, _ = make_web_directory("dmoz-small", scale=0.1)
    classifier = TaxonomyClassifier(train.taxonomy, device="cpu", work_dir=arguments.work_dir)
    TaxonomyClassifier(C=1.0, device="cpu").fit(train.X[:40], train.y[:40])  # load the kernels
    solved.clear()
    if arguments.largest_file is not None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (arguments.largest_file, hard))
    print("fitting", flush=True)  # noqa: T201  (the test waits for it)
    classifier.fit(train.X, train.y)
    classifier.save(arguments.model)
    print(len(solved), flush=True)  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main()
