from __future__ import annotations

import csv
import inspect
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taxofit import TaxonomyClassifier, datasets, load_model
from taxofit.datasets.dataset import INTERNAL_LABEL_CHOICES
from taxofit.datasets.text_encoder import ANALYSES
from taxofit.errors import DataError, ModelError
from taxofit.methods import FLATTENINGS
from taxofit.workflow.demo import run_demo
from taxofit.workflow.describing import describe
from taxofit.workflow.evaluating import evaluate_file
from taxofit.workflow.file_formats import format_of
from taxofit.workflow.options import (
    FEATURES,
    INTERNAL_LABELS,
    METHODS,
    OPTION_OF_ARGUMENT,
    FitOptions,
    in_options,
)
from taxofit.workflow.predict_options import PredictOptions
from taxofit.workflow.predicting import predict_file
from taxofit.workflow.sources import Source, read_for_fit
from taxofit.workflow.training import fit_file

TABLE = FitOptions(text=("title",), label_path="category", method="td-lr", C="10")


def write(file, *lines):
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(file)


@pytest.fixture
def shop(tmp_path):
    titles = {"Kettles": "kettle", "Mugs": "mug"}
    rows = [f"{word} {titles[k]},Home > {k}" for k in titles for word in ("red", "blue", "green")]
    rows += [f"{word} fish,Pets > Fish" for word in ("red", "blue", "green")]
    return write(tmp_path / "shop.csv", "title,category", *rows)


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{10 * k + rng.normal():.3f},{-10 * k + rng.normal():.3f},{label}"
        for k, label in enumerate(["1@1/1", "1@1/2", "2@2/1"])
        for _ in range(8)
    ]
    header = ["@RELATION x", "@ATTRIBUTE a NUMERIC", "@ATTRIBUTE b NUMERIC"]
    classes = "@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1"
    return write(tmp_path / "images.arff", *header, classes, "@DATA", *rows)


class TestOptions:
    def test_names_and_defaults_are_those_of_the_library(self):
        defaults = inspect.signature(TaxonomyClassifier).parameters
        assert tuple(FLATTENINGS) == METHODS
        assert ("auto", *ANALYSES) == FEATURES
        assert set(INTERNAL_LABELS) <= set(INTERNAL_LABEL_CHOICES)
        assert FitOptions.method == defaults["flattening"].default
        assert defaults["C"].default == FitOptions.C
        assert FitOptions.seed == defaults["random_state"].default
        assert FitOptions.scale == "none"

    def test_every_argument_that_a_reader_advises_has_an_option(self):
        only_python = {"zero_based", "feature_ids"}
        advised = {
            name
            for file in Path(datasets.__file__).parent.glob("*.py")
            for name in re.findall(r"pass (?:the right )?(\w+)=", file.read_text(encoding="utf-8"))
        }
        assert {"internal_labels", "encoding"} <= advised
        assert advised - only_python - {"multilabel"} <= set(OPTION_OF_ARGUMENT)
        assert in_options("pass multilabel=True to read 1, 2") == "keep only one of 1, 2"

    @pytest.mark.parametrize("C", ["0", "-1", "nan", "inf", "much"])
    def test_regularisation_is_a_positive_number(self, C):
        with pytest.raises(DataError, match="C must be a positive number or 'auto'"):
            FitOptions(C=C).check()

    @pytest.mark.parametrize("seed", [-1, 2**32])
    def test_a_seed_out_of_range_is_refused(self, seed):
        with pytest.raises(DataError, match="seed must be"):
            FitOptions(seed=seed).check()

    @pytest.mark.parametrize(
        ("options", "format_", "said"),
        [
            (FitOptions(label_path="p", levels=("a",)), "table", "--path .* or --level, not both"),
            (FitOptions(category=("t",)), "arff", "--category names columns of a table"),
            (FitOptions(), "svmlight", "give its file with --hierarchy"),
            (FitOptions(text=("t",)), "svmlight", "--text names columns of a table"),
            (FitOptions(hierarchy="h"), "arff", "drop --hierarchy"),
        ],
    )
    def test_options_that_do_not_go_with_a_format_are_refused(self, options, format_, said):
        with pytest.raises(DataError, match=said):
            options.check_for(format_, "rows")


class TestSources:
    @pytest.mark.parametrize(
        ("name", "content", "format_"),
        [
            ("a.CSV.gz", None, "table"),
            ("a.parquet", None, "table"),
            ("a.libsvm", None, "svmlight"),
            ("a.arff", None, "arff"),
            ("a.txt", "# made\n12 3:1 4:0.5\n", "svmlight"),
            ("a.txt", "12, 13 3:1\n", "svmlight"),
            ("a.txt", "title\tcategory\n", "table"),
            ("a", "% old\n@RELATION x\n", "arff"),
        ],
    )
    def test_a_format_is_known_by_the_name_or_the_first_line(
        self, tmp_path, name, content, format_
    ):
        file = tmp_path / name
        if content is not None:
            file.write_text(content)
        assert format_of(str(file)) == format_

    def test_a_source_comes_back_from_notes(self):
        source = Source(format="svmlight", ignore_features=(0,), feature_ids=(3, 7))
        notes = {"source": json.loads(json.dumps(source.to_notes()))}
        assert Source.from_notes(notes, "model") == source

    def test_a_model_saved_from_python_says_that_it_cannot_read_files(self):
        with pytest.raises(ModelError, match="was saved from Python"):
            Source.from_notes({}, "model")

    @pytest.mark.parametrize("notes", [{"source": {"colour": 1}}, {"source": 3}])
    def test_damaged_notes_are_a_model_error(self, notes):
        with pytest.raises(ModelError, match="damaged"):
            Source.from_notes(notes, "model")

    def test_the_separator_is_guessed_once_and_kept(self, shop):
        data, source = read_for_fit(shop, TABLE)
        assert source.separator == " > "
        assert data.notes == ("paths in 'category' are split at ' > ' (guessed)",)

    def test_a_separator_that_no_label_has_is_refused_where_another_would_do(self, shop):
        options = FitOptions(text=("title",), label_path="category", separator="/")
        with pytest.raises(DataError, match=r"has the separator '/'; is it ' > '\?"):
            read_for_fit(shop, options)

    def test_plain_labels_need_no_separator(self, tmp_path):
        file = write(tmp_path / "a.csv", "title,category", "mug,Home", "fish,Pets")
        options = FitOptions(text=("title",), label_path="category", separator="/")
        assert read_for_fit(file, options)[0].taxonomy.depth == 1

    def test_parquet_is_a_table_like_any_other(self, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        from pyarrow import table

        file = tmp_path / "a.parquet"
        parquet.write_table(table({"x": [1.0, 2.0], "category": ["A/B", "C/D"]}), file)
        options = FitOptions(numeric=("x",), label_path="category")
        data, source = read_for_fit(str(file), options)
        assert (data.y.tolist(), source.separator) == (["B", "D"], "/")

    def test_levels_of_their_own_columns_are_read_as_paths(self, tmp_path):
        file = write(tmp_path / "a.csv", "x,one,two", "1,Home,Mugs", "2,Pets,Fish", "3,Pets,Cats")
        data, _ = read_for_fit(file, FitOptions(numeric=("x",), levels=("one", "two")))
        assert data.y.tolist() == ["Mugs", "Fish", "Cats"]

    def test_a_hierarchy_file_decides_which_labels_there_are(self, tmp_path, shop):
        hierarchy = write(tmp_path / "h.txt", "Home > Kettles", "Home > Mugs", "Pets > Cats")
        options = FitOptions(text=("title",), label_path="category", hierarchy=hierarchy)
        data, _ = read_for_fit(shop, options)
        assert set(data.y.tolist()) == {"Kettles", "Mugs"}
        assert data.left_out[0].to_json() == {
            "reason": "with a label that the hierarchy lacks",
            "rows": 3,
            "first": ["line 8", "line 9", "line 10"],
        }
        with pytest.raises(DataError, match="'Fish' is not a child of 'Pets'"):
            read_for_fit(shop, replace(options, strict=True))


class TestFit:
    def test_a_table_is_trained_saved_and_scored(self, shop, tmp_path):
        stages = []
        report = fit_file(
            shop,
            str(tmp_path / "model"),
            TABLE,
            test=shop,
            progress=lambda stage, *_: stages.append(stage),
        )
        assert (report.n_rows, report.n_leaves, report.n_nodes) == (9, 3, 6)
        assert report.test is not None
        assert report.test.scores["micro_f1"] == 1.0
        assert stages[:2] == ["Reading", "Encoding"]
        assert "Saving" in stages
        assert load_model(tmp_path / "model").predict(["tiny mug"]).tolist() == ["Mugs"]
        assert json.loads(json.dumps(report.to_json()))["test"]["micro_f1"] == 1.0

    def test_svmlight_counts_become_tf_idf_over_the_features_of_training(self, tmp_path):
        hierarchy = write(tmp_path / "h.txt", "1 2", "1 3")
        rows = write(tmp_path / "a.txt", "2 0:9 100:1", "2 0:9 100:2 7:1", "3 0:9 50:1", "3 50:3")
        options = FitOptions(hierarchy=hierarchy, ignore_features=(0,), method="td-lr", C="10")
        model = str(tmp_path / "model")
        report = fit_file(rows, model, options)
        assert report.n_features == 3
        new = write(tmp_path / "new.txt", "0 50:1 99999:4", "0 100:1")
        out = io.StringIO()
        assert predict_file(model, new, out).n_rows == 2
        assert [line.split(",")[0] for line in out.getvalue().splitlines()] == ["label", "3", "2"]

    def test_arff_with_scaled_columns_predicts_its_rows(self, images, tmp_path):
        model = str(tmp_path / "model")
        report = fit_file(images, model, FitOptions(scale="max", method="lr", C="100"), test=images)
        assert report.test is not None
        assert report.test.scores["micro_f1"] == 1.0
        assert report.n_nodes_kept == 4

    def test_somebody_elses_folder_is_refused_before_any_work(self, tmp_path):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "thesis.tex").touch()
        with pytest.raises(ModelError, match="is not a taxofit model"):
            fit_file("no-such-file.csv", str(tmp_path / "model"), TABLE)

    def test_a_folder_below_a_file_is_refused_before_any_work(self, shop):
        with pytest.raises(DataError, match=r"cannot be made: .*shop\.csv is a file"):
            fit_file("no-such-file.csv", f"{shop}/model", TABLE)

    def test_a_model_without_a_folder_is_refused(self, shop):
        with pytest.raises(ModelError, match="needs a folder"):
            fit_file(shop, " ", TABLE)

    def test_rows_without_any_features_are_refused(self, tmp_path):
        hierarchy = write(tmp_path / "h.txt", "1 2", "1 3")
        rows = write(tmp_path / "a.svm", "2", "3")
        with pytest.raises(DataError, match="labels but no features"):
            fit_file(rows, str(tmp_path / "model"), FitOptions(hierarchy=hierarchy))

    def test_a_bad_test_file_is_refused_before_training(self, shop, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            fit_file(shop, str(tmp_path / "model"), TABLE, test="absent.csv")
        assert not (tmp_path / "model").exists()


class TestPredict:
    @pytest.fixture
    def model(self, shop, tmp_path):
        fit_file(shop, str(tmp_path / "model"), TABLE)
        return str(tmp_path / "model")

    def test_cells_that_a_spreadsheet_would_run_get_an_apostrophe(self, tmp_path):
        rows = ("spam,=A1,=B1", "ham,Home,Ham") * 3
        file = write(tmp_path / "f.csv", "title,top,leaf", *rows)
        options = FitOptions(text=("title",), levels=("top", "leaf"), method="td-lr", C="10")
        model = str(tmp_path / "m")
        fit_file(file, model, options)
        safe, exact = io.StringIO(), io.StringIO()
        predict_file(model, file, safe)
        predict_file(model, file, exact, PredictOptions(exact=True))
        assert next(csv.DictReader(io.StringIO(safe.getvalue())))["label"] == "'=B1"
        assert next(csv.DictReader(io.StringIO(exact.getvalue())))["path"] == "=A1 > =B1"

    def test_the_input_is_never_overwritten(self, model, shop):
        with pytest.raises(DataError, match="is the file to read"):
            predict_file(model, shop, shop)

    def test_a_folder_that_does_not_exist_is_named(self, model, shop, tmp_path):
        with pytest.raises(DataError, match="does not exist; make it first"):
            predict_file(model, shop, str(tmp_path / "absent" / "out.csv"))

    def test_a_folder_is_not_a_file_to_write(self, model, shop, tmp_path):
        with pytest.raises(DataError, match="is a folder"):
            predict_file(model, shop, str(tmp_path))

    def test_a_device_is_written_to_and_not_replaced(self, model, shop):
        assert predict_file(model, shop, os.devnull).n_rows == 9
        assert not os.path.isfile(os.devnull)  # noqa: PTH113  (os.devnull is a text)

    def test_a_new_file_gets_the_permissions_of_any_new_file(self, model, shop, tmp_path):
        predict_file(model, shop, str(tmp_path / "out.csv"))
        (tmp_path / "plain").touch()
        assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_rows_of_another_width_are_refused(self, images, tmp_path):
        model = str(tmp_path / "m")
        fit_file(images, model, FitOptions(method="td-lr", C="1"))
        lines = ["@RELATION x", "@ATTRIBUTE a NUMERIC", "@ATTRIBUTE class hierarchical 1,1/1,1/2"]
        narrow = write(tmp_path / "narrow.arff", *lines, "@DATA", "3,1/1", "4,1/2")
        with pytest.raises(DataError, match="rows have 1 numbers, but the model was trained on 2"):
            predict_file(model, narrow, io.StringIO())


class TestEvaluate:
    def test_a_deeper_label_than_those_of_training_is_an_error_of_the_model(self, shop, tmp_path):
        model = str(tmp_path / "model")
        fit_file(shop, model, TABLE)
        lines = ("red mug,Home > Mugs", "blue mug,Home > Mugs > Tall", "red fish,Fish")
        report = evaluate_file(model, write(tmp_path / "new.csv", "title,category", *lines))
        assert report.scores["micro_f1"] == pytest.approx(2 / 3)
        assert report.n_rows == 3
        assert "'Home > Mugs > Tall'" in report.notes[-1]

    def test_an_empty_label_is_named_by_its_line(self, shop, tmp_path):
        model = str(tmp_path / "model")
        fit_file(shop, model, TABLE)
        new = write(tmp_path / "new.csv", "title,category", "mug,Mugs", "cup,")
        with pytest.raises(DataError, match=r"new.csv:3: the label is empty"):
            evaluate_file(model, new, strict=True)
        report = evaluate_file(model, new)
        assert report.n_rows == 1
        assert report.notes == ("1 row without a label (line 3)",)


class TestDescribe:
    def test_every_kind_of_file_is_known(self, shop, images, tmp_path):
        edges = write(tmp_path / "edges.csv", "parent,child", "a,b", "a,c")
        rows = write(tmp_path / "rows.txt", "2 0:9 100:1", "3 50:1")
        paths = write(tmp_path / "paths.txt", "Home > Mugs", "Pets > Fish")
        kinds = [describe(file)["kind"] for file in (shop, images, edges, rows, paths)]
        assert kinds == ["table", "arff", "hierarchy", "svmlight", "hierarchy"]
        assert describe(rows)["feature_0_in_rows"] == 1
        assert describe(shop)["columns"][1]["distinct"] == 3

    def test_a_model_tells_what_it_reads_and_what_it_removed(self, shop, tmp_path):
        model = str(tmp_path / "model")
        fit_file(shop, model, FitOptions(text=("title",), label_path="category", method="lr"))
        description = describe(model)
        assert description["removed"] == ["Home", "Pets"]
        assert description["reads"]["label_path"] == "category"
        json.dumps(description)


class TestDemo:
    def test_a_folder_with_other_files_is_refused(self, tmp_path):
        (tmp_path / "thesis.tex").touch()
        with pytest.raises(DataError, match="holds other files"):
            run_demo(str(tmp_path))

    def test_a_file_is_not_a_folder(self, tmp_path):
        (tmp_path / "demo").touch()
        with pytest.raises(DataError, match="is a file"):
            run_demo(str(tmp_path / "demo"))

    def test_a_negative_seed_is_refused(self, tmp_path):
        with pytest.raises(DataError, match="seed must be"):
            run_demo(str(tmp_path / "demo"), seed=-1)

    def test_too_few_rows_are_refused_and_nothing_is_written(self, tmp_path):
        with pytest.raises(DataError, match="n_rows must be at least"):
            run_demo(str(tmp_path / "demo"), n_rows=10)
        assert not (tmp_path / "demo").exists()


def test_star_names_all_columns_that_begin_so(tmp_path):
    file = tmp_path / "frogs.csv"
    file.write_text("mfcc_1,mfcc_2,kind\n1,2,a\n3,4,b\n")
    options = FitOptions(numeric=("mfcc_*",), label_path="kind")
    assert Source.from_options(options, str(file)).numeric == ("mfcc_1", "mfcc_2")
    with pytest.raises(DataError, match=r"no column is like 'x\*'; the columns are 'mfcc_1'"):
        Source.from_options(FitOptions(numeric=("x*",), label_path="kind"), str(file))
