import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from taxofit import Taxonomy, TaxonomyError

PATHS = [
    ("Home", "Kitchen", "Kettles"),
    ("Home", "Kitchen", "Mugs"),
    ("Home", "Toys"),
    ("Pets", "Dogs", "Toys"),
    ("Pets", "Fish"),
]


@pytest.fixture
def shop():
    return Taxonomy.from_paths(PATHS)


def test_asking_whether_a_label_is_there_looks_for_no_like_one(shop, monkeypatch):
    """That took milliseconds for each: minutes where a table has thousands of paths."""
    compared = []
    monkeypatch.setattr("difflib.get_close_matches", lambda *given, **_: compared.append(given))
    for known in ("Kitchen", "Pets > Dogs > Toys", ("Home", "Toys"), ["Pets", "Fish", ""]):
        assert known in shop
    for unknown in ("Kettle", "Toys", 7, ("Home", "Kettle"), ("Home", "", "Toys"), (), {}, [{}]):
        assert unknown not in shop
    assert compared == []


def test_nodes_are_in_breadth_first_order(shop):
    assert shop.parent.tolist() == sorted(shop.parent.tolist())
    assert shop.level.tolist() == sorted(shop.level.tolist())
    for node in range(shop.n_nodes):
        assert all(shop.parent[child] == node for child in shop.children(node))


def test_repeated_names_become_joined_paths(shop):
    assert shop.leaves == ("Kettles", "Mugs", "Home > Toys", "Pets > Dogs > Toys", "Fish")
    with pytest.raises(TaxonomyError, match="'Toys' is the name of 2 nodes, 'Home > Toys', 'Pets"):
        shop.node_of("Toys")
    assert shop.node_of(("Home", "Toys")) == shop.node_of("Home > Toys")
    assert "Toys" not in shop
    assert ["Home", "Toys", None] in shop


def test_labels_are_looked_up_in_all_the_ways_people_write_them(shop):
    padded = np.array([["Home", "Toys", ""], ["Pets", "Dogs", "Toys"]], dtype=object)
    expected = [shop.node_of("Home > Toys"), shop.node_of("Pets > Dogs > Toys")]
    assert shop.nodes_of(padded).tolist() == expected
    assert shop.nodes_of([("Home", "Toys"), "Pets > Dogs > Toys"]).tolist() == expected
    assert shop.nodes_of(pd.DataFrame(padded)).tolist() == expected
    assert shop.nodes_of(pd.Series(["Home > Toys", "Pets > Dogs > Toys"])).tolist() == expected


def test_relatives_have_the_labels_that_the_paths_say(shop):
    assert shop.parent_of("Kettles") == "Kitchen"
    assert shop.parent_of(shop.root) is None
    assert shop.children_of("Pets") == ("Dogs", "Fish")
    assert shop.level_of("Mugs") == 3
    assert shop.leaves_under("Home") == ("Kettles", "Mugs", "Home > Toys")
    assert shop.path_of("Mugs") == ("Home", "Kitchen", "Mugs")
    assert shop.internal_nodes == ("Home", "Pets", "Kitchen", "Dogs")
    assert shop.distance("Kettles", "Fish") == 5


def test_first_name_that_all_paths_share_is_the_root():
    taxonomy = Taxonomy.from_paths([("all", "a", "x"), ("all", "b")])
    assert taxonomy.root == "all"
    assert not taxonomy.has_virtual_root
    assert taxonomy.to_paths() == [("all", "a", "x"), ("all", "b")]


def test_several_tops_get_a_virtual_root():
    taxonomy = Taxonomy.from_edges([("a", "x"), ("b", "y")])
    assert taxonomy.has_virtual_root
    assert taxonomy.children_of(taxonomy.root) == ("a", "b")
    assert taxonomy.path_of("x") == ("a", "x")


@pytest.mark.parametrize("labels", [[3, 1, 2], ["c", "a", "b"], [(1, "x"), (0,), ("y", 2)]])
def test_labels_may_be_any_hashables_and_keep_their_order(labels):
    taxonomy = Taxonomy.from_labels(labels)
    assert taxonomy.leaves == tuple(labels)
    assert taxonomy.nodes_of(labels).tolist() == [1, 2, 3]


def test_flattened_children_stand_where_their_parent_stood(shop):
    flat = shop.flatten(["Kitchen", "Pets"])
    assert flat.children_of("Home") == ("Kettles", "Mugs", "Home > Toys")
    assert flat.children_of(flat.root) == ("Home", "Dogs", "Fish")


def test_flattening_nothing_changes_nothing(shop):
    assert shop.flatten([]) == shop


def test_chains_collapse_as_in_clef():
    """A chain of single children ends as its leaf; CLEF's 8 > 8/0 > 8/0/0 hangs on the root."""
    edges = [("r", "8"), ("8", "8/0"), ("8/0", "8/0/0"), ("r", "2"), ("2", "2/0"), ("2", "2/1")]
    edges += [("2/0", "2/0/0"), ("2/1", "2/1/2"), ("2/1", "2/1/3")]
    collapsed = Taxonomy.from_edges(edges).collapse_chains()
    assert collapsed.to_paths() == [
        ("r", "8/0/0"),
        ("r", "2", "2/0/0"),
        ("r", "2", "2/1", "2/1/2"),
        ("r", "2", "2/1", "2/1/3"),
    ]


def test_arrays_are_read_only(shop):
    names = ["parent", "level", "first_child", "leaf_order", "leaf_start", "leaf_stop"]
    for taxonomy in (shop, shop.flatten(["Kitchen"]), pickle.loads(pickle.dumps(shop))):  # noqa: S301  (our own bytes)
        for name in names:
            with pytest.raises(ValueError, match="read-only"):
                getattr(taxonomy, name)[0] = 7


def test_hundred_thousand_nodes_can_be_built_and_flattened():
    n_nodes = 100_000
    parents = np.maximum(np.arange(n_nodes) - 1, 0) // 10
    parents[0] = -1
    taxonomy = Taxonomy.from_parents(parents)
    assert taxonomy.n_nodes == n_nodes
    flat = taxonomy.flatten(taxonomy.internal_nodes)
    assert flat.depth == 1
    assert flat.leaves == taxonomy.leaves


def test_equal_taxonomies_have_equal_hashes(shop):
    other = Taxonomy.from_paths(PATHS)
    assert other == shop
    assert hash(other) == hash(shop)
    assert other != shop.flatten(["Dogs"])
    assert shop != "shop"


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "empty"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "cycle: .*'a'"),
        ([("r", "x"), ("a", "b"), ("b", "a")], "cycle: .*'a'.*'b'"),
        ([("a", "a")], "cycle: 'a' → 'a'"),
        (
            [("Home", "Gifts"), ("Sale", "Gifts")],
            "'Gifts' has two parents, 'Home' and 'Sale'.*edge 1",
        ),
        ([("a", "b", "c")], r"\(parent, child\) pair.*\('a', 'b', 'c'\).*edge 0"),
        ([("a", ["b"])], "hashable.*edge 0"),
        ([7], "pair.*7.*edge 0"),
    ],
)
def test_bad_edges_are_named(edges, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_edges(edges)


def test_readers_of_edges_say_where_an_edge_came_from():
    with pytest.raises(TaxonomyError, match="line 12"):
        Taxonomy.from_edges([("a", "b"), ("c", "b")], describe_edge=lambda i: f"line {i + 11}")


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "empty"),
        (["Home > Kettles"], "sequence of names, got the text 'Home > Kettles'.*path 0"),
        ([("Home", "Mugs"), ("Home", "", "Kettles")], "gap.*path 1"),
        ([("Home", float("nan"), "Kettles")], "gap"),
        ([("Home",), (None, "")], "no names at all.*path 1"),
        ([("A", "B"), ("C", "B"), ("A > B",)], "'A > B' would name two nodes"),
    ],
)
def test_bad_paths_are_named(paths, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_paths(paths)


@pytest.mark.parametrize(
    ("parents", "labels", "message"),
    [
        ([], None, "non-empty"),
        ([-1], None, "empty: 0 has no children"),
        ([-1, 5], None, r"parents\[1\] is 5.*-1 to 1"),
        ([-1, -2], None, r"parents\[1\] is -2"),
        ([-1.0, 0.0], None, "integers"),
        ([-1, 0], ["a"], "2 parents but 1 labels"),
        ([-1, 0, 0], ["a", "b", "b"], "unique; 'b'"),
        ([1, 0], ["a", "b"], "cycle"),
    ],
)
def test_bad_parents_are_named(parents, labels, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_parents(parents, labels)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([("a", "b")]), "undirected"),
        (nx.DiGraph(), "empty"),
        (nx.DiGraph([("a", "c"), ("b", "c")]), "'c' has several parents, 'a', 'b'"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "cycle"),
    ],
)
def test_bad_graphs_are_named(graph, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_networkx(graph)


def test_empty_label_list_is_an_error():
    with pytest.raises(TaxonomyError, match="empty"):
        Taxonomy.from_labels([])


def test_unknown_labels_come_with_a_suggestion(shop):
    with pytest.raises(TaxonomyError, match="unknown label 'Kettle'; did you mean 'Kettles'"):
        shop.node_of("Kettle")
    with pytest.raises(
        TaxonomyError, match="'Mug' is not a child of 'Kitchen'; did you mean 'Mugs'"
    ):
        shop.node_of(("Home", "Kitchen", "Mug"))
    with pytest.raises(TaxonomyError, match="unknown label 7; labels are of type str"):
        shop.nodes_of([7])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["<root>"], "'<root>' is the root"),
        (["Fish"], "'Fish' is a leaf"),
        (["Kitchens"], "did you mean 'Kitchen'"),
        ("Kitchen", r"flatten\(\['Kitchen'\]\)"),
    ],
)
def test_what_cannot_be_flattened_is_named(shop, labels, message):
    with pytest.raises(TaxonomyError, match=message):
        shop.flatten(labels)


def test_constructor_points_to_the_builders():
    with pytest.raises(TypeError, match="from_edges"):
        Taxonomy()
