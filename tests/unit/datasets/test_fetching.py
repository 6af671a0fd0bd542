"""Fetched data sets, from a real HTTP server of our own; the public one is not needed."""

from __future__ import annotations

import gzip
import hashlib
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from tests.real_data import real_data

from taxofit import DataError
from taxofit.datasets import fetch_clef, fetch_diatoms, fetching, load_benchmark

ARFF = """@relation 'images'
@attribute size numeric
@attribute edge numeric
@attribute class hierarchical 1/1,1/2,2/1
@data
{rows}
"""
ROWS = {"Train": ("1,0,1/1", "0,1,1/2", "3,3,2/1", "2,0,1/1"), "Test": ("1,1,1/2", "4,3,2/1")}


class CountingHandler(SimpleHTTPRequestHandler):
    """Serves a folder, and remembers what was asked for."""

    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def source(tmp_path):
    """Start a server of a folder with small files in the names of CLEF; yield both."""
    folder = tmp_path / "source"
    folder.mkdir()
    for part, rows in ROWS.items():
        text = ARFF.format(rows="\n".join(rows))
        (folder / f"ImCLEF07A_{part}.arff").write_text(text)
    handler = type("Handler", (CountingHandler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder, handler.asked
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, source, monkeypatch):
    """Let the small files be the published ones; return an empty cache folder."""
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in source[1].iterdir()
    }
    monkeypatch.setitem(fetching.SHA256, "clef", digests)
    return tmp_path / "cache"


def test_files_are_fetched_once_and_read_as_the_benchmark(source, cache):
    url, _, asked = source
    train, test = fetch_clef(folder=cache, base_url=url)
    assert (train.name, train.n_rows, test.n_rows, train.n_features) == ("clef", 4, 2, 2)
    assert train.taxonomy is test.taxonomy
    assert sorted(asked) == ["/ImCLEF07A_Test.arff", "/ImCLEF07A_Train.arff"]
    again, _ = fetch_clef(folder=cache, base_url=url)
    assert len(asked) == 2
    loaded, _ = load_benchmark("clef", cache)
    for other in (again, loaded):
        np.testing.assert_array_equal(other.X, train.X)
        np.testing.assert_array_equal(other.y, train.y)


def test_folder_and_source_may_come_from_the_environment(source, cache, monkeypatch):
    monkeypatch.setenv("TAXOFIT_CACHE", str(cache))
    monkeypatch.setenv("TAXOFIT_MIRROR", source[0] + "/")
    fetch_clef()
    assert (cache / "CLEF" / "ImCLEF07A_Train.arff").is_file()


def test_what_is_kept_needs_no_server(cache, source):
    fetch_clef(folder=cache, base_url=source[0])
    train, _ = fetch_clef(folder=cache, base_url="http://127.0.0.1:9")
    assert train.n_rows == 4


def test_a_file_that_was_changed_on_the_disk_is_fetched_again(source, cache):
    url, folder, asked = source
    fetch_clef(folder=cache, base_url=url)
    kept = cache / "CLEF" / "ImCLEF07A_Test.arff"
    kept.write_text("something else")
    fetch_clef(folder=cache, base_url=url)
    assert kept.read_bytes() == (folder / kept.name).read_bytes()
    assert len(asked) == 3


def test_a_file_that_was_changed_at_the_source_is_refused_and_not_kept(source, cache):
    url, folder, _ = source
    file = folder / "ImCLEF07A_Test.arff"
    file.write_text(file.read_text().replace("4,3,2/1", "4,3,1/1"))
    with pytest.raises(DataError, match=r"Test.arff is not the file that was published .*MIRROR"):
        fetch_clef(folder=cache, base_url=url)
    assert [kept.name for kept in (cache / "CLEF").iterdir()] == ["ImCLEF07A_Train.arff"]


def test_a_source_that_is_down_or_lacks_the_file_is_one_clear_error(source, cache):
    url, folder, _ = source
    with pytest.raises(DataError, match=r"http://127.0.0.1:9/ImCLEF07A_Tra.* cannot be fetched"):
        fetch_clef(folder=cache, base_url="http://127.0.0.1:9")
    (folder / "ImCLEF07A_Train.arff").unlink()
    with pytest.raises(DataError, match=r"cannot be fetched .*404.*try again, name another source"):
        fetch_clef(folder=cache, base_url=url)
    assert not list(cache.rglob("*.arff"))


def test_a_cache_that_cannot_be_written_is_one_clear_error(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be fetched into"):
        fetch_clef(folder=tmp_path / "file", base_url=source[0])


def test_without_the_extra_its_name_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"pip install 'taxofit\[fetch\]'"):
        fetch_diatoms(folder=tmp_path)


@pytest.mark.parametrize(
    ("fetch", "name", "n_rows"), [(fetch_clef, "clef", 10_000), (fetch_diatoms, "diatoms", 1940)]
)
def test_the_hashes_are_those_of_the_real_files(fetch, name, n_rows, source, tmp_path):
    home = real_data(name.upper())
    for file in home.glob("*.gz"):
        (source[1] / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    train, test = fetch(folder=tmp_path / "cache", base_url=source[0])
    expected = load_benchmark(name, home.parent)
    assert train.n_rows == n_rows
    for fetched, read in zip((train, test), expected, strict=True):
        np.testing.assert_array_equal(fetched.X, read.X)
        assert fetched.y.tolist() == read.y.tolist()
