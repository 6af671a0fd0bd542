"""Files as people have them, given to the command line with as little said as possible."""

from __future__ import annotations

import csv
import json
import warnings

import pytest

from taxofit import cli

KINDS = {
    "Home > Kitchen > Kettles": ("steel kettle", "whistling kettle", "electric kettle"),
    "Home > Kitchen > Mugs": ("stoneware mug", "travel mug", "enamel mug"),
    "Home > Garden": ("garden spade", "hedge shears", "garden hose"),
    "Pets > Fish": ("guppy food", "fish tank", "aquarium pump"),
    "Pets > Dogs": ("dog lead", "puppy bowl", "dog biscuits"),
}
WORDS = ("größte", "large", "blue", "red", "“fine”")
ROWS = [
    (f"{word} {title}", str(10 + 3 * k), "Acme" if k % 2 else "Zeta", path)
    for k, (path, titles) in enumerate(KINDS.items())
    for title in titles
    for word in WORDS
]
HEADING = ("Title", "Price", "Brand", "Category")


@pytest.fixture(autouse=True)
def _warnings_are_shown_as_before(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in this process; return its JSON, having checked that it went well."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.main([*map(str, arguments), "--json"])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        return json.loads(shown.out)

    return run


def table(file, *, delimiter=",", encoding="utf-8", rows=ROWS, more=""):
    with file.open("w", encoding=encoding, newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(HEADING)
        writer.writerows(rows)
        stream.write(more)
    return file


@pytest.mark.parametrize(
    ("name", "delimiter", "encoding", "said"),
    [
        ("a.csv", ";", "cp1252", ["read as cp1252", "separated by ';'"]),
        ("a.tsv", "\t", "utf-8-sig", ["separated by '\\t'"]),
        ("a.txt", "|", "utf-16", ["separated by '|'"]),
        ("a.csv", ",", "utf-8", []),
    ],
)
def test_tables_of_any_make_are_fitted_with_no_option(
    run, tmp_path, name, delimiter, encoding, said
):
    table(tmp_path / name, delimiter=delimiter, encoding=encoding)
    report = run("fit", name, "--model", "m")
    assert report["rows"] == len(ROWS)
    assert report["rows_left_out"] == []
    notes = " ".join(report["notes"])
    assert all(words in notes for words in said)
    assert "text from 'Title' and labels from 'Category'" in notes
    assert "split at ' > '" in notes
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["notes"]["source"]["text"] == ["Title"]
    assert [way["name"] for way in manifest["notes"]["validation"]["ways"]][:1] == ["flat"]
    assert manifest["notes"]["options"]["method"] == "global-inf"
    scores = run("evaluate", "m", name)
    assert scores["micro_f1"] > 0.9


def test_parquet_is_fitted_with_no_option(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from pyarrow import table as make

    columns = dict(zip(HEADING, map(list, zip(*ROWS, strict=True)), strict=True))
    parquet.write_table(make(columns), tmp_path / "a.parquet")
    assert run("fit", "a.parquet", "--model", "m")["rows"] == len(ROWS)


def test_text_files_in_folders_are_rows_and_labels(run, tmp_path):
    for number, (title, _, _, path) in enumerate(ROWS):
        folder = tmp_path / "posts" / path.lower().replace(" > ", ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}").write_bytes(title.encode("cp1252"))
    (tmp_path / "posts" / ".DS_Store").write_bytes(b"\x00")
    (tmp_path / "posts" / "home.garden" / "empty").touch()
    report = run("fit", "posts", "--model", "m", "--test", "posts")
    assert report["rows"] == len(ROWS)
    assert (report["leaves"], report["nodes"]) == (5, 9)
    assert report["notes"] == ["paths in 'folder' are split at '.' (guessed)"]
    assert report["rows_left_out"] == [
        {"reason": "without text", "rows": 1, "first": ["home.garden/empty"]}
    ]
    assert report["test"]["micro_f1"] > 0.9
    assert run("info", "posts")["rows"] == len(ROWS) + 1
    nested = tmp_path / "nested"
    for folder in (tmp_path / "posts").glob("*.*"):
        if folder.is_dir():
            target = nested / folder.name.replace(".", "/")
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
    again = run("fit", "nested", "--model", "m2")
    assert (again["leaves"], again["nodes"]) == (5, 9)
    assert again["notes"] == ["paths in 'folder' are split at '/' (guessed)"]


def test_rows_that_cannot_be_used_are_counted_or_stop_the_strict(run, tmp_path, capsys):
    more = "no price\r\n,1,Acme,Pets > Fish\r\nthing,1,Acme,\r\n"
    file = table(tmp_path / "a.csv", more=more)
    report = run("fit", file, "--text", "Title", "--path", "Category", "--model", "m")
    first = len(ROWS) + 2
    assert {(left["reason"], *left["first"]) for left in report["rows_left_out"]} == {
        ("with too many or too few fields", f"line {first}"),
        ("without text", f"line {first + 1}"),
        ("without a label", f"line {first + 2}"),
    }
    assert cli.main(["fit", str(file), "--model", "m", "--strict"]) == 2
    assert f"a.csv:{first}: 1 fields where the heading has 4" in capsys.readouterr().err


def test_texts_numbers_and_categories_are_combined(run, tmp_path):
    rows = [(title, "" if k % 7 == 0 else price, brand, path)
            for k, (title, price, brand, path) in enumerate(ROWS)]  # fmt: skip
    table(tmp_path / "a.csv", rows=rows)
    report = run(
        "fit", "a.csv", "--text", "Title", "--numeric", "Price", "--category", "Brand",
        "--path", "Category", "--model", "m",
    )  # fmt: skip
    assert report["rows"] == len(ROWS)
    assert run("evaluate", "m", "a.csv")["micro_f1"] > 0.9
    assert run("info", "m")["reads"]["category"] == ["Brand"]
    assert cli.main(["predict", "m", "a.csv", "-o", "out.csv", "-q"]) == 0
    with (tmp_path / "out.csv").open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(ROWS)


def test_unclear_columns_are_listed_with_a_command_to_start_from(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
    assert cli.main(["fit", "a.csv", "--model", "m"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "The columns are 'x', 'y', 'z'" in line
    assert line.endswith("for example: taxofit fit a.csv --text x --path z --model model")


def test_flatten_writes_the_taxonomy_and_says_why(run, tmp_path, capsys):
    table(tmp_path / "a.csv")
    report = run("flatten", "a.csv", "-o", "mine.json", "--method", "tlf", "--model", "m")
    assert report["removed"] == ["Home", "Pets"]
    written = json.loads((tmp_path / "mine.json").read_text(encoding="utf-8"))
    assert [removal["label"] for removal in written["removed"]] == ["Home", "Pets"]
    assert {node["label"] for node in written["nodes"]} == {
        "<root>", "Kitchen", "Kettles", "Mugs", "Garden", "Fish", "Dogs"
    }  # fmt: skip
    assert cli.main(["flatten", "a.csv", "-o", "mine.tsv", "--method", "tlf"]) == 0
    shown = capsys.readouterr().out
    assert "Removed 2 of 3 inner nodes" in shown
    assert "level 1 is removed as a whole" in shown
    compared = run("evaluate", "m", "a.csv", "--taxonomy", "mine.tsv")
    assert [system["name"] for system in compared["systems"]] == ["original", "mine.tsv"]
    assert set(compared["differences"][0]) >= {"micro_sign_p", "macro_wilcoxon_p"}
    assert run("evaluate", "m", "a.csv", "--against", "m")["differences"][0]["micro_sign_p"] == 1


def test_errors_speak_of_options_and_not_of_arguments(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "a.csv", rows=[*ROWS, ("thing", "1", "Acme", "Home")])
    strict = ["fit", "a.csv", "--model", "m", "--internal-labels", "error"]
    assert cli.main(strict) == 2
    assert "pass --internal-labels drop to leave these rows out" in capsys.readouterr().err
    assert cli.main(["fit", "a.csv", "--model", "m", "--encoding", "ascii"]) == 2
    assert "pass the right --encoding" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "offered"),
    [("taxofit fl", "flatten"), ("taxofit fit a.csv --method glo", "global-inf")],
)
def test_the_shell_completes_commands_and_choices(words, offered, taxofit, monkeypatch):
    monkeypatch.setenv("_TAXOFIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert taxofit().stdout.split() == [offered]
