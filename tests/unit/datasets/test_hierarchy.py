from __future__ import annotations

import pytest

from taxofit import DataError, TaxonomyError
from taxofit.datasets import read_hierarchy


def write(folder, text):
    file = folder / "tree.txt"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n1 3\n2 4\n2 5\n",
        "# tree\n\n1\t2\n1\t3\n2\t4\n2\t5\n",
        "parent,child\n1,2\n1,3\n2,4\n2,5\n",
        '"1";"2"\n1;3\n2;4\n2;5\n',
        "1 > 2\n1 > 3\n2 > 4\n2 > 5",
        "\ufeffParent|Child\r\n1|2\r\n1|3\r\n2|4\r\n2|5\r\n",
    ],
)
def test_two_columns_are_edges(tmp_path, text):
    taxonomy = read_hierarchy(write(tmp_path, text))
    assert taxonomy.to_edges() == [(1, 2), (1, 3), (2, 4), (2, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "Home > Kitchen & bath > Kettles\nHome > Garden\nPets\n",
        "Home/Kitchen & bath/Kettles\nHome/Garden\nPets\n",
        "Home::Kitchen & bath::Kettles\nHome::Garden\nPets\n",
        "Home,Kitchen & bath,Kettles\nHome,Garden,\nPets,,\n",
        'Home\t"Kitchen & bath"\tKettles\nHome\tGarden\t\nPets\t\t\n',
    ],
)
def test_paths_of_names_are_split_where_they_should_be(tmp_path, text):
    taxonomy = read_hierarchy(write(tmp_path, text))
    assert taxonomy.to_paths() == [
        ("Home", "Kitchen & bath", "Kettles"),
        ("Home", "Garden"),
        ("Pets",),
    ]


def test_labels_with_slashes_in_two_columns_are_edges(tmp_path):
    taxonomy = read_hierarchy(write(tmp_path, "4 4/6\n4/6 4/6/2\n4 4/5\n"))
    assert taxonomy.parent_of("4/6/2") == "4/6"


def test_labels_are_integers_only_where_all_are(tmp_path):
    assert read_hierarchy(write(tmp_path, "1 2\n1 3\n")).leaves == (2, 3)
    assert read_hierarchy(write(tmp_path, "1 02\n1 2\n")).leaves == ("02", "2")


def test_layout_and_separator_can_be_said(tmp_path):
    file = write(tmp_path, "Home-Toys\nPets-Toys\n")
    taxonomy = read_hierarchy(file, layout="paths", separator="-")
    assert taxonomy.leaves == ("Home > Toys", "Pets > Toys")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a b\n\nc d\ne b\n", {}, r"node 'b' has two parents, 'a' and 'e'.*tree.txt:4"),
        ("a b\nb c\nc a\n", {}, r"tree.txt:3: the taxonomy has a cycle"),
        ("a b\na b c\n", {"layout": "edges"}, r"tree.txt:2: expected a parent and a child"),
        ("a,b\na,\n", {}, r"tree.txt:2: expected a parent and a child"),
        ("a > b > c\na > > c\n", {}, r"tree.txt:2: .*gap"),
        ("\n# nothing\n", {}, r"tree.txt: the file has no edges"),
        ('a,"b\n', {"separator": ","}, r"tree.txt:1: "),
    ],
)
def test_what_is_no_tree_is_named_with_file_and_line(tmp_path, text, options, message):
    with pytest.raises(TaxonomyError, match=message):
        read_hierarchy(write(tmp_path, text), **options)


def test_unknown_layout_is_refused(tmp_path):
    with pytest.raises(DataError, match="layout must be one of"):
        read_hierarchy(write(tmp_path, "a b\n"), layout="tree")
