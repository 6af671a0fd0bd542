import pickle

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from taxofit import Taxonomy


@st.composite
def taxonomies(draw):
    """Draw a tree of up to 30 nodes in shuffled order, with one or several tops."""
    n_nodes = draw(st.integers(2, 30))
    n_tops = draw(st.integers(1, min(3, n_nodes - 1)))
    parents = [-1] * n_tops + [draw(st.integers(0, i - 1)) for i in range(n_tops, n_nodes)]
    order = draw(st.permutations(range(n_nodes)))
    place = {node: position for position, node in enumerate(order)}
    shuffled = [-1 if parents[node] < 0 else place[parents[node]] for node in order]
    return Taxonomy.from_parents(shuffled, [f"n{i}" for i in range(n_nodes)])


@st.composite
def flattenings(draw):
    """Draw a taxonomy and some of its internal nodes, in any order."""
    taxonomy = draw(taxonomies())
    internal = list(taxonomy.internal_nodes)
    chosen = draw(st.lists(st.sampled_from(internal), unique=True)) if internal else []
    return taxonomy, chosen


def searched_leaves(taxonomy, label):
    children = taxonomy.children_of(label)
    if not children:
        return {label}
    return set().union(*(searched_leaves(taxonomy, child) for child in children))


@given(flattenings())
def test_surviving_node_keeps_its_leaves(case):
    taxonomy, removed = case
    flat = taxonomy.flatten(removed)
    assert set(flat.labels) == set(taxonomy.labels) - set(removed)
    for label in flat.labels:
        assert searched_leaves(flat, label) == searched_leaves(taxonomy, label)


@given(flattenings())
def test_order_and_number_of_steps_of_removal_are_irrelevant(case):
    taxonomy, removed = case
    at_once = taxonomy.flatten(removed)
    assert taxonomy.flatten(reversed(removed)) == at_once
    stepwise = taxonomy
    for label in removed:
        stepwise = stepwise.flatten([label])
    assert stepwise == at_once
    middle = len(removed) // 2
    assert taxonomy.flatten(removed[:middle]).flatten(removed[middle:]) == at_once


@given(flattenings())
def test_child_of_a_removed_node_goes_to_its_nearest_surviving_ancestor(case):
    taxonomy, removed = case
    flat = taxonomy.flatten(removed)
    for label in flat.labels[1:]:
        above = taxonomy.parent_of(label)
        while above in removed:
            above = taxonomy.parent_of(above)
        assert flat.parent_of(label) == above


@given(flattenings())
def test_flattening_keeps_the_order_of_leaves(case):
    taxonomy, removed = case
    assert taxonomy.flatten(removed).leaves == taxonomy.leaves


@given(flattenings())
def test_kept_nodes_are_those_of_the_original(case):
    taxonomy, removed = case
    flat, kept = taxonomy.without(np.isin(taxonomy.labels, removed))
    assert [taxonomy.labels[node] for node in kept] == list(flat.labels)


@given(taxonomies())
def test_flattening_every_internal_node_gives_the_flat_tree(taxonomy):
    flat = taxonomy.flatten(taxonomy.internal_nodes)
    assert flat.depth == 1
    assert flat.children_of(flat.root) == flat.leaves == taxonomy.leaves


@given(taxonomies())
def test_round_trips_lose_nothing(taxonomy):
    assert pickle.loads(pickle.dumps(taxonomy)) == taxonomy  # noqa: S301  (our own bytes)
    assert Taxonomy.from_edges(taxonomy.to_edges()) == taxonomy
    assert Taxonomy.from_networkx(taxonomy.to_networkx()) == taxonomy
    assert set(Taxonomy.from_paths(taxonomy.to_paths()).to_paths()) == set(taxonomy.to_paths())
    parents = {label: taxonomy.parent_of(label) for label in taxonomy.labels}
    assert Taxonomy.from_parents(parents) == taxonomy
    assert Taxonomy.from_parents(taxonomy.parent, taxonomy.labels) == taxonomy


@given(taxonomies())
def test_path_names_the_node_it_belongs_to(taxonomy):
    for label in taxonomy.labels[1:]:
        assert taxonomy.node_of(taxonomy.path_of(label)) == taxonomy.node_of(label)


@given(taxonomies())
def test_leaf_ranges_are_the_leaves_that_a_search_finds(taxonomy):
    for label in taxonomy.labels:
        under = taxonomy.leaves_under(label)
        assert len(under) == len(set(under))
        assert set(under) == searched_leaves(taxonomy, label)


@given(taxonomies(), st.data())
def test_distance_is_the_shortest_path_of_networkx(taxonomy, data):
    nodes = st.integers(0, taxonomy.n_nodes - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(nodes, nodes), min_size=1, max_size=20)))
    graph = taxonomy.to_networkx()
    lowest = taxonomy.common_ancestors(pairs[:, 0], pairs[:, 1])
    distances = taxonomy.distances(pairs[:, 0], pairs[:, 1])
    for (a, b), meeting, distance in zip(pairs, lowest, distances, strict=True):
        ends = taxonomy.labels[a], taxonomy.labels[b]
        assert distance == nx.shortest_path_length(graph.to_undirected(), *ends)
        assert taxonomy.labels[meeting] == nx.lowest_common_ancestor(graph, *ends)


@given(taxonomies())
def test_ancestor_table_has_every_ancestor_at_its_level(taxonomy):
    table = taxonomy.ancestors(np.arange(taxonomy.n_nodes))
    for node, row in enumerate(table):
        above = [node]
        while above[-1]:
            above.append(int(taxonomy.parent[above[-1]]))
        padding = [-1] * (taxonomy.depth + 1 - len(above))
        assert row.tolist() == above[::-1] + padding
