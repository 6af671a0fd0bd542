import csv

import numpy as np
import pytest

from taxofit import DataError
from taxofit.datasets import catalogue
from taxofit.datasets.catalogue import make_shop_catalogue


@pytest.fixture(scope="module")
def shop():
    return make_shop_catalogue()


def test_every_product_has_a_title_and_a_leaf(shop):
    assert len(shop.titles) == len(shop.descriptions) == len(shop.y) == 4000
    assert all(len(title) > 2 for title in shop.titles)
    assert set(shop.y) == set(shop.taxonomy.leaves)


def test_bad_categories_are_internal_nodes_of_the_tree(shop):
    assert set(shop.inconsistent) < set(shop.taxonomy.internal_nodes)
    assert 40 <= shop.taxonomy.n_leaves <= 70
    assert shop.taxonomy.depth == 3


def test_bad_category_has_at_most_one_group_of_a_department_and_of_a_kind():
    lines = [line.split(" | ") for line in catalogue.PRODUCT_GROUPS.strip().splitlines()]
    for bad in catalogue.INCONSISTENT:
        members = [line for line in lines if line[2].startswith(bad)]
        assert len(members) >= 4
        assert len({line[0] for line in members}) == len(members)
        assert len({line[1] for line in members}) == len(members)


def test_sound_groups_sit_in_their_own_department():
    for line in catalogue.PRODUCT_GROUPS.strip().splitlines():
        department, _, path, _ = line.split(" | ")
        assert path.startswith((department, *catalogue.INCONSISTENT))


def test_class_sizes_are_uneven(shop):
    counts = np.unique(shop.y, return_counts=True)[1]
    assert counts.min() >= 8
    assert counts.max() > 3 * np.median(counts)


def test_some_rows_are_short(shop):
    share = np.mean([not description for description in shop.descriptions])
    assert 0.1 < share < 0.2


def test_same_seed_gives_the_same_shop_and_another_seed_another(shop):
    assert make_shop_catalogue().texts == shop.texts
    assert make_shop_catalogue(random_state=1).texts != shop.texts


def test_csv_holds_titles_descriptions_and_full_paths(shop, tmp_path):
    shop.to_csv(tmp_path / "shop.csv")
    with (tmp_path / "shop.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == shop.to_rows()
    for row, label in zip(rows, shop.y, strict=True):
        assert shop.taxonomy.node_of(tuple(row["category"].split(" > "))) == shop.taxonomy.node_of(
            label
        )


def test_dataset_holds_texts(shop):
    assert shop.dataset.X.tolist() == list(shop.texts)
    assert shop.dataset.y is shop.y


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(DataError, match="at least 8 per product group, 496 for 62, but is 100"):
        make_shop_catalogue(100)
