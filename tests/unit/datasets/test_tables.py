from __future__ import annotations

import difflib
import gzip
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from taxofit import DataError, Taxonomy
from taxofit.datasets import BadRows, from_frame, iter_table, read_table

SHOP = (
    "id,title,brand,price,category\n"
    '1,Kettle,"Steel, Ltd.",12,Home > Kitchen > Kettles\n'
    "2,Spade,,7.5,Home > Garden\n"
    "3,Guppy,Aqua,1e1,Pets > Fish\n"
)


def write(folder, text, name="products.csv", encoding="utf-8"):
    file = folder / name
    file.write_bytes(text.encode(encoding))
    return file


def failure(folder, content, **options):
    options = {"text": "title", "label_path": "category", **options}
    with pytest.raises(DataError) as caught:
        read_table(write(folder, content), **options)
    return str(caught.value).removeprefix(f"{folder}/")


def test_text_columns_are_joined_by_a_space(tmp_path):
    shop = read_table(write(tmp_path, SHOP), text=["title", "brand"], label_path="category")
    assert shop.X.tolist() == ["Kettle Steel, Ltd.", "Spade", "Guppy Aqua"]
    assert shop.y.tolist() == ["Kettles", "Garden", "Fish"]
    assert shop.taxonomy.to_paths()[0] == ("Home", "Kitchen", "Kettles")
    assert shop.notes == ("paths in 'category' are split at ' > ' (guessed)",)


def test_numeric_columns_are_floats(tmp_path):
    shop = read_table(write(tmp_path, SHOP), numeric=["price", "id"], label_path="category")
    np.testing.assert_array_equal(shop.X, [[12, 1], [7.5, 2], [10, 3]])
    assert shop.X.dtype == np.float64


@pytest.mark.parametrize("separator", [" > ", ">", "/", "|", "::", ";"])
def test_separator_of_paths_is_guessed_and_noted(tmp_path, separator):
    paths = [separator.join(path) for path in (("A", "B", "C"), ("A", "D"))]
    file = write(tmp_path, "title,category\n" + "".join(f"x,{path}\n" for path in paths))
    shop = read_table(file, text="title", label_path="category")
    assert shop.taxonomy.to_paths() == [("A", "B", "C"), ("A", "D")]
    assert repr(separator) in shop.notes[0]


def test_labels_without_a_separator_are_a_flat_taxonomy(tmp_path):
    file = write(tmp_path, "title,category\na,ham\nb,spam\n")
    mails = read_table(file, text="title", label_path="category")
    assert mails.taxonomy.depth == 1
    assert "no separator" in mails.notes[0]


def test_levels_may_end_early(tmp_path):
    text = "title,top,middle,leaf\na,Home,Kitchen,Kettles\nb,Pets,Fish,\nc,Pets,Cats,\n"
    shop = read_table(write(tmp_path, text), text="title", levels=["top", "middle", "leaf"])
    assert shop.y.tolist() == ["Kettles", "Fish", "Cats"]


def test_repeated_names_are_told_apart_by_their_paths(tmp_path):
    text = "title,category\na,Home/Toys\nb,Pets/Toys\n"
    shop = read_table(write(tmp_path, text), text="title", label_path="category")
    assert shop.y.tolist() == ["Home > Toys", "Pets > Toys"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_guessed(tmp_path, delimiter):
    text = f"title{delimiter}category\r\na{delimiter}X > Y\r\nb{delimiter}X > Z\r\n"
    shop = read_table(write(tmp_path, text), text="title", label_path="category")
    assert shop.y.tolist() == ["Y", "Z"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_found_out(tmp_path, encoding):
    text = "title,category\nKürbis,Gemüse > Kürbisse\nKohl,Gemüse > Kohl\n"
    file = write(tmp_path, text, encoding=encoding)
    shop = read_table(file, text="title", label_path="category")
    assert shop.X[0] == "Kürbis"
    assert any("not UTF-8" in note for note in shop.notes) == (encoding == "latin-1")


def test_wrong_encoding_is_a_data_error(tmp_path):
    text = "title,category\nKürbis,A > B\n"
    assert "encoding=" in failure(tmp_path, text, encoding="ascii")
    assert "unknown encoding" in failure(tmp_path, text, encoding="klingon")


def test_gzip_is_unpacked(tmp_path):
    file = tmp_path / "products.csv.gz"
    file.write_bytes(gzip.compress(SHOP.encode()))
    assert read_table(file, text="title", label_path="category").n_rows == 3


def test_long_fields_are_read(tmp_path):
    text = f"title,category\n{'word ' * 50_000},A > B\nx,A > C\n"
    shop = read_table(write(tmp_path, text), text="title", label_path="category")
    assert len(shop.X[0]) > 200_000


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (SHOP, {"text": "name"}, "products.csv: no column 'name'; the columns are 'id', 'title'"),
        (SHOP, {"label_path": "kind"}, "products.csv: no column 'kind'"),
        (SHOP, {"text": (), "numeric": "brand"}, "products.csv:2: column 'brand' is not a number"),
        (SHOP, {"levels": ["id"]}, "give either label_path"),
        (SHOP, {"text": ()}, "products.csv: name the columns of features"),
        (SHOP, {"separator": ""}, "separator must not be empty"),
        (SHOP, {"delimiter": "||"}, "delimiter must be one character"),
        (SHOP + "4,Cat,,1\n", {}, "products.csv:5: 4 fields where the heading has 5"),
        (SHOP + "4,Cat,,1, \n", {}, "products.csv:5: the label is empty"),
        (SHOP + "4,Cat,,1,A >  > B\n", {}, "products.csv:5: the path"),
        (SHOP + '4,"Cat,,1,A > B\n', {}, "products.csv:5: not a CSV row"),
        ("", {}, "products.csv: the file is empty"),
        ("\n\n", {}, "products.csv: the file is empty"),
        ("title,category\n", {}, "products.csv: the table has a heading but no rows"),
        (
            "title,title,category\na,b,c\n",
            {},
            "products.csv: no column 'title'; the columns are 'title (1)'",
        ),
    ],
)
def test_malformed_tables_are_named(tmp_path, text, options, message):
    assert failure(tmp_path, text, **options).startswith(message)


@pytest.mark.parametrize(("value", "what"), [("abc", "not a number: 'abc'"), ("", "empty")])
def test_what_is_no_number_is_named_with_line_and_column(tmp_path, value, what):
    text = f'price,kind\n1,A > B\n"2\n",A > C\n{value},A > B\n'
    message = failure(tmp_path, text, text=(), numeric="price", label_path="kind")
    assert message.startswith(f"products.csv:5: column 'price' is {what}")


def test_infinite_numbers_are_refused(tmp_path):
    message = failure(tmp_path, "x,category\n1,A\ninf,B\n", text=(), numeric="x")
    assert message.startswith("products.csv:3: column 'x' is 'inf'")


def test_given_taxonomy_takes_labels_and_paths(tmp_path):
    taxonomy = Taxonomy.from_paths([("Home", "Toys"), ("Pets", "Toys"), ("Pets", "Fish")])
    text = "title,category\na,Fish\nb,Home > Toys\nc,Pets > Fish\n"
    shop = read_table(write(tmp_path, text), text="title", label_path="category", taxonomy=taxonomy)
    assert shop.y.tolist() == ["Fish", "Home > Toys", "Fish"]
    assert shop.taxonomy is taxonomy
    text += "d,Dogs\ne,Dogs\n"
    message = failure(tmp_path, text, taxonomy=taxonomy)
    assert message.startswith("products.csv:5: unknown label 'Dogs'")
    assert "2 of 5 rows" in message


def test_given_taxonomy_of_integers_takes_their_texts(tmp_path):
    taxonomy = Taxonomy.from_edges([(1, 20), (1, 33)])
    file = write(tmp_path, "title,category\na,20\nb,33\n")
    shop = read_table(file, text="title", label_path="category", taxonomy=taxonomy)
    assert shop.y.tolist() == [20, 33]


def test_internal_labels_are_refused_dropped_or_kept(tmp_path):
    text = SHOP + "4,Things,,1,Home\n"
    message = failure(tmp_path, text)
    assert message.startswith("products.csv:5: 'Home' is an internal node")
    file = write(tmp_path, text)
    options = {"text": "title", "label_path": "category"}
    dropped = read_table(file, **options, internal_labels="drop")
    assert dropped.n_rows == 3
    assert "dropped 1 of 4 rows" in dropped.notes[-1]
    assert read_table(file, **options, internal_labels="keep").y.tolist()[-1] == "Home"


def test_table_comes_in_bounded_chunks(tmp_path):
    file = write(tmp_path, "a,b\n" + "".join(f"{n},x\n" for n in range(10)))
    chunks = list(iter_table(file, ["a"], chunk_rows=4))
    assert [chunk.n_rows for chunk in chunks] == [4, 4, 2]
    assert chunks[2].columns == {"a": ["8", "9"]}
    assert chunks[2].locate(1).endswith("products.csv:11")
    with pytest.raises(DataError, match="chunk_rows"):
        next(iter_table(file, chunk_rows=0))


def test_quoted_newlines_do_not_shift_line_numbers(tmp_path):
    chunk = next(iter_table(write(tmp_path, 'a,b\n"x\ny",1\n\nz,2\n')))
    assert list(chunk.lines) == [2, 5]


def frame():
    return {
        "title": ["Kettle", None, "Cat"],
        "price": [12, 3, 5],
        "top": ["Home", "Pets", "Pets"],
        "leaf": ["Kettles", "Fish", None],
    }


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_all_kinds_are_read_alike(make):
    options = {"levels": ["top", "leaf"], "internal_labels": "drop"}
    texts = from_frame(make(frame()), text="title", **options)
    assert texts.X.tolist() == ["Kettle", ""]
    assert texts.y.tolist() == ["Kettles", "Fish"]
    numbers = from_frame(make(frame()), numeric="price", **options)
    np.testing.assert_array_equal(numbers.X, [[12], [3]])
    with pytest.raises(DataError, match=r"frame: row 1: the label is empty"):
        from_frame(
            make({"x": [1, 2], "y": ["a", None]}), numeric="x", label_path="y", separator=">"
        )
    with pytest.raises(DataError, match="frame: no column 'name'; the columns are 'title'"):
        from_frame(make(frame()), text="name", **options)
    with pytest.raises(DataError, match="frame: name the columns"):
        from_frame(make(frame()))


def test_what_is_no_frame_is_refused():
    with pytest.raises(DataError, match="expected a pandas, polars or pyarrow table but got list"):
        from_frame([1, 2], text="a", label_path="b")


def test_missing_numbers_of_a_frame_are_named():
    table = pd.DataFrame({"x": [1, np.nan], "y": ["a", "b"]})
    with pytest.raises(DataError, match=r"frame: row 1: column 'x' is nan"):
        from_frame(table, numeric="x", label_path="y")


def test_missing_values_of_pandas_are_empty():
    table = pd.DataFrame(
        {
            "x": pd.array([1, None], dtype="Int64"),
            "top": ["A", "B"],
            "leaf": pd.array(["a", None], dtype="string"),
        }
    )
    assert from_frame(table, text="x", levels=["top", "leaf"]).y.tolist() == ["a", "B"]
    with pytest.raises(DataError, match=r"frame: row 1: column 'x' is (empty|nan)"):
        from_frame(table, numeric="x", levels=["top", "leaf"])


def test_parquet_is_read_in_chunks(tmp_path):
    file = tmp_path / "products.parquet"
    pyarrow.parquet.write_table(pa.table(frame()), file)
    options = {"levels": ["top", "leaf"], "internal_labels": "drop"}
    shop = read_table(file, numeric="price", **options)
    np.testing.assert_array_equal(shop.X, [[12], [3]])
    assert "products.parquet: row 3" in shop.notes[0]
    assert [chunk.n_rows for chunk in iter_table(file, ["price"], chunk_rows=2)] == [2, 1]
    with pytest.raises(DataError, match="no column 'name'; the columns are 'title'"):
        read_table(file, text="name", **options)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'taxofit\[parquet\]'"):
        read_table(tmp_path / "products.parquet", text="title", label_path="category")


def test_damaged_or_absent_parquet_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read_table(write(tmp_path, "PAR1 no", "x.parquet"), text="title", label_path="category")
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "nowhere.parquet", text="title", label_path="category")
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "nowhere.csv", text="title", label_path="category")


MESSY = (
    "title,description,category\n"
    "Steel kettle,big,Home > Kettles\n"
    ",,Home > Kettles\n"
    "Guppy,small,\n"
    "Guppy,small,Pets > Fish\n"
    "Guppy,small\n"
    "Mug,,Home >  > Mugs\n"
    "Guppy,,Pets\n"
    'Cat "Tom",,Pets > Cats\n'
    '"Cat" x,,Pets > Cats\n'
    "Pan,,Home > Pans,,\n"
)


def test_rows_that_cannot_be_used_are_counted_with_their_lines(tmp_path):
    bad_rows = BadRows()
    shop = read_table(
        write(tmp_path, MESSY),
        text=["title", "description"],
        label_path="category",
        internal_labels="drop",
        bad_rows=bad_rows,
    )
    assert shop.y.tolist() == ["Kettles", "Fish", "Cats", "Pans"]
    assert shop.X.tolist() == ["Steel kettle big", "Guppy small", 'Cat "Tom"', "Pan"]
    assert {(left.reason, left.n_rows, left.places) for left in shop.left_out} == {
        ("without text", 1, ("line 3",)),
        ("without a label", 1, ("line 4",)),
        ("with too many or too few fields", 1, ("line 6",)),
        ("with a gap in the path", 1, ("line 7",)),
        ("labelled with a category that has others below it", 1, ("line 8",)),
        ("with broken quotes", 1, ("line 10",)),
    }


@pytest.mark.parametrize("line", [3, 4, 6, 7, 8, 10])
def test_where_they_must_not_be_the_first_is_an_error(tmp_path, line):
    lines = MESSY.splitlines(keepends=True)
    file = write(tmp_path, "".join([lines[0], lines[1], lines[4], lines[line - 1]]))
    with pytest.raises(DataError, match=r"products\.csv:4: "):
        read_table(
            file,
            text=["title", "description"],
            label_path="category",
            internal_labels="drop",
            bad_rows=BadRows(strict=True),
        )


def test_a_table_of_nothing_but_bad_rows_says_why(tmp_path):
    file = write(tmp_path, "title,category\nmug,\ncup,\n")
    with pytest.raises(DataError, match=r"no row can be used: 2 rows without a label \(line 2"):
        read_table(file, text="title", label_path="category", bad_rows=BadRows())


def test_labels_that_the_hierarchy_lacks_are_left_out(tmp_path):
    file = write(tmp_path, "title,category\nmug,Home > Mugs\ncup,Home > Cups\nfish,Pets > Fish\n")
    taxonomy = Taxonomy.from_paths([("Home", "Mugs"), ("Pets", "Fish")])
    bad_rows = BadRows()
    shop = read_table(
        file, text="title", label_path="category", taxonomy=taxonomy, bad_rows=bad_rows
    )
    assert shop.y.tolist() == ["Mugs", "Fish"]
    assert str(bad_rows.left_out[0]) == "1 row with a label that the hierarchy lacks (line 3)"


@pytest.mark.parametrize("strict", [False, True])
def test_only_the_label_of_an_error_is_compared_with_those_there_are(tmp_path, monkeypatch, strict):
    """Comparing takes milliseconds for each label, and tables have thousands that are paths."""
    compared, compare = [], difflib.get_close_matches

    def compare_and_count(word, *arguments, **options):
        compared.append(word)
        return compare(word, *arguments, **options)

    monkeypatch.setattr("difflib.get_close_matches", compare_and_count)
    rows = [f"mug {k},Home > Mugs {k}\n" for k in range(20)]
    file = write(tmp_path, "".join(["title,category\n", *rows]))
    known = Taxonomy.from_paths([("Home", f"Mugs {k}") for k in range(10)])
    how = {"text": "title", "label_path": "category", "taxonomy": known}
    bad_rows = BadRows(strict=strict)
    if strict:
        with pytest.raises(DataError, match=r"csv:12: .*'Mugs 10' is not a child of 'Home'"):
            read_table(file, bad_rows=bad_rows, **how)
        assert compared == ["Mugs 10"]
    else:
        assert len(read_table(file, bad_rows=bad_rows, **how).y) == 10
        assert compared == []
    with pytest.raises(DataError, match=r"csv:12: .*'Mugs 10' is not a child .*10 of 20 rows"):
        read_table(file, **how)
    assert set(compared) == {"Mugs 10"}


def test_columns_of_several_kinds_keep_their_missing_numbers_but_not_other_words(tmp_path):
    file = write(tmp_path, "title;cm;brand;kind\nmug;9,5;Acme;A\ncup;;;B\npan;wide;Acme;A\n")
    bad_rows = BadRows()
    shop = read_table(
        file, text="title", numeric="cm", category="brand", label_path="kind", bad_rows=bad_rows
    )
    assert shop.X.tolist() == [["mug", "9,5", "Acme"], ["cup", "", ""]]
    assert str(bad_rows.left_out[0]) == "1 row where 'cm' is not a number (line 4)"


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        ("sep=;\ntitle;category\nkettle, steel;A\nmug;B\n", ["kettle, steel", "mug"]),
        (" title ;category;\nkettle;A;\nmug;B;\n", ["kettle", "mug"]),
        ('title|category\n"a|b";A\nc|B\n', ["c"]),
        ('title\tcategory\n"two\nlines"\tA\nmug\tB\n', ["two\nlines", "mug"]),
    ],
)
def test_oddities_of_delimited_files_are_understood(tmp_path, content, titles):
    shop = read_table(
        write(tmp_path, content), text="title", label_path="category", bad_rows=BadRows()
    )
    assert shop.X.tolist() == titles


@pytest.mark.parametrize(
    ("encoding", "title", "found"),
    [
        ("cp1252", "Kürbis – 5 €", "cp1252"),
        ("utf-16-le", "Kürbis", "utf-16-le"),
        ("utf-16-be", "Kürbis", "utf-16-be"),
    ],
)
def test_encodings_without_a_mark_are_found_out_and_said(tmp_path, encoding, title, found):
    file = write(tmp_path, f"title,category\n{title},A > B\nx,A > C\n", encoding=encoding)
    shop = read_table(file, text="title", label_path="category")
    assert shop.X[0] == title
    assert f"is read as {found}" in shop.notes[0]


def test_a_byte_that_cp1252_lacks_is_read_as_latin_1(tmp_path):
    file = tmp_path / "products.csv"
    file.write_bytes(b"title,category\nK\xfcrbis\x81,A > B\nx,A > C\n")
    assert read_table(file, text="title", label_path="category").X[0] == "Kürbis\x81"
