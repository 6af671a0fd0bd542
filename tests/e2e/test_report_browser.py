"""The report in a real browser: it works, asks the network for nothing, and people can use it.

Screenshots go to $TAXOFIT_ARTIFACTS where that is set, else to pytest's own folder.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.study_samples import (
    HOSTILE,
    N_LARGE,
    hostile_study,
    large_study,
    other_study,
    shop_study,
)

from taxofit.report import write_report
from taxofit.study import read_study

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOUND = next(filter(None, map(shutil.which, BROWSERS)), None)
if FOUND is None:
    pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SCORES = ("micro_f1", "macro_f1", "hierarchical_f1", "tree_error")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine is no failure


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=FOUND, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory) -> Path:
    folder = os.environ.get("TAXOFIT_ARTIFACTS")
    place = Path(folder) if folder else tmp_path_factory.mktemp("screenshots")
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture(scope="module")
def study():
    return shop_study()[0]


@pytest.fixture(scope="module")
def report(study, tmp_path_factory) -> Path:
    return write_report(study, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def visit(browser):
    """Open a file; fail afterwards where the console or the network had anything to say."""
    complaints, contexts = [], []

    def open_page(file: Path, *, viewport=WIDE, **options):
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda m: complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda r: _is_own(r.url, file) or complaints.append(f"asks {r.url}"))
        page.goto(file.as_uri())
        page.wait_for_function("window.Plotly !== undefined")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _is_own(url: str, file: Path) -> bool:
    return url.split("#", maxsplit=1)[0] == file.as_uri() or url.startswith(("data:", "blob:"))


def scroll_through(page):
    """Let every lazily drawn chart come into view, and wait until all are drawn."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator(".main-svg").first).to_be_attached()
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")


def removed_at(study, step):
    """Return the names of the nodes that go, from the study itself."""
    nodes, threshold = study["nodes"], study["candidates"]["threshold"][step]
    inner = set(nodes["parent"]) - {-1, 0}
    return {nodes["name"][n] for n in inner if nodes["objective"][n] > threshold}


def chips(page):
    return {text.removeprefix("✕ ") for text in page.locator("#gone .chip").all_inner_texts()}


def test_every_chart_is_drawn_and_nothing_is_wider_than_the_window(visit, report, artifacts):
    for name, viewport in (("wide", WIDE), ("narrow", NARROW)):
        page = visit(report, viewport=viewport)
        scroll_through(page)
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        page.screenshot(path=artifacts / f"report-{name}.png", full_page=True)


def test_the_slider_shows_the_nodes_and_scores_that_python_found(visit, report, study):
    page, candidates = visit(report), study["candidates"]
    assert len({tuple(sorted(removed_at(study, step))) for step in (0, 12, 30)}) == 3
    for step in (0, 12, 30):
        page.locator("#psi").evaluate(
            "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }", step
        )
        expect(page.locator("#psi-value")).to_have_text(f"{candidates['psi'][step]:.1f}")
        assert chips(page) == removed_at(study, step)
        for score in SCORES:
            value = candidates[score][step]
            shown = f"{value:.3f}" if score == "tree_error" else f"{100 * value:.2f} %"
            expect(page.locator(f'[data-score="{score}"]')).to_have_text(shown)


def test_the_slider_moves_by_keyboard_and_goes_back_to_the_fitted_model(visit, report, study):
    page = visit(report)
    fitted = study["candidates"]["psi"].index(study["psi"])
    assert chips(page) == {study["nodes"]["name"][node] for node in study["nodes"]["removed"]}
    page.locator("#psi").focus()
    page.keyboard.press("ArrowLeft" if fitted else "ArrowRight")
    step = fitted - 1 if fitted else 1
    assert chips(page) == removed_at(study, step)
    assert f"ψ {study['candidates']['psi'][step]:.1f}" in page.locator("#psi").get_attribute(
        "aria-valuetext"
    )
    page.locator("#psi-reset").click()
    expect(page.locator("#psi-value")).to_have_text(f"{study['psi']:.1f}")
    expect(page.locator("#psi-reset")).to_be_disabled()


def test_another_method_than_the_sliders_is_shown_as_it_was_fitted(visit, tmp_path):
    study = other_study(flattening="tlf", C=1.0, search="beam")
    page = visit(write_report(study, tmp_path / "report.html"))
    expect(page.locator("#psi-value")).to_have_text("– (fitted by tlf+beam)")
    shown = f"{100 * study['results'][-1]['macro_f1']:.2f} %"
    expect(page.locator('[data-score="macro_f1"]')).to_have_text(shown)
    page.locator("#psi").focus()
    page.keyboard.press("Home")
    assert chips(page) == removed_at(study, 0)
    page.locator("#psi-reset").click()
    expect(page.locator('[data-score="macro_f1"]')).to_have_text(shown)
    scroll_through(page)


def test_search_finds_a_node_and_opens_the_tree_down_to_it(visit, report, study):
    page = visit(report)
    leaf = study["nodes"]["name"].index("Shoe boxes")
    page.locator("#search").fill("shoe bo")  # 'Shoes > Insoles and boot mats' has both, too
    expect(page.locator("#search-results b")).to_have_text(["Shoe boxes", "Insoles and boot mats"])
    page.keyboard.press("Enter")
    item = page.locator(f"#node-{leaf}")
    expect(item).to_have_attribute("aria-selected", "true")
    expect(item).to_be_visible()
    details = page.locator("#details")
    expect(details.locator("h3")).to_contain_text("Shoe boxes")
    expect(details).to_contain_text(f"{study['nodes']['rows'][leaf]}")
    word = study["features"][str(leaf)]["for"][0][0]
    expect(details.locator(".words .for").first).to_contain_text(word)


def test_search_for_what_is_not_there_says_so(visit, report):
    page = visit(report)
    page.locator("#search").fill("zebra crossing")
    expect(page.locator("#search-results")).to_contain_text("Nothing has this name.")
    page.keyboard.press("Escape")
    expect(page.locator("#search-results")).to_be_hidden()


def test_the_tree_is_walked_with_arrow_keys(visit, report, study):
    page = visit(report)
    names = study["nodes"]["name"]
    focused = "Number(document.activeElement.dataset.node)"
    page.locator("#node-0").focus()
    page.keyboard.press("ArrowDown")
    first = page.evaluate(focused)
    assert first == 1
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"#node-{first}")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowRight")
    child = page.evaluate(focused)
    assert study["nodes"]["parent"][child] == first
    page.keyboard.press("Enter")
    expect(page.locator("#details h3")).to_contain_text(names[child])
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == first
    page.keyboard.press("ArrowLeft")
    expect(page.locator(f"#node-{first}")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("End")
    assert study["nodes"]["parent"][page.evaluate(focused)] == 0
    page.keyboard.press("Home")
    assert page.evaluate(focused) == 0
    assert page.locator('#tree [tabindex="0"]').count() == 1


def test_after_repair_removed_nodes_are_gone_and_their_children_stand_above(visit, report, study):
    page = visit(report)
    gone = next(n for n in study["nodes"]["removed"] if study["nodes"]["parent"][n] == 0)
    child = study["nodes"]["parent"].index(gone)
    expect(page.locator(f"#node-{gone} .badge.gone").first).to_have_text("✕ removed")
    page.locator('input[name="view"][value="after"]').check()
    expect(page.locator(f"#node-{gone}")).to_have_count(0)
    expect(page.locator(f"#tree > li > ul > #node-{child}")).to_be_visible()
    page.locator('input[name="view"][value="before"]').check()
    expect(page.locator(f"#node-{gone}")).to_be_visible()


def test_a_block_of_the_icicle_zooms_in_and_selects(visit, report, study):
    page = visit(report)
    page.locator("#icicle").scroll_into_view_if_needed()
    block = page.locator("#icicle .slice", has_text="Home & Kitchen").first
    block.click()
    expect(page.locator("#zoom-path b")).to_have_text("Home & Kitchen")
    node = study["nodes"]["name"].index("Home & Kitchen")
    expect(page.locator(f"#node-{node}")).to_have_attribute("aria-selected", "true")
    page.locator("#zoom-path button").first.click()
    expect(page.locator("#zoom-path b")).to_have_text("All categories")


def test_a_removed_node_leads_to_what_is_known_about_it(visit, report):
    page = visit(report)
    chip = page.locator("#gone .chip").last
    name = chip.inner_text().removeprefix("✕ ")
    chip.click()
    expect(page.locator("#details h3")).to_have_text(f"{name} ✕ removed")
    expect(page.locator("#details")).to_be_in_viewport()
    expect(page.locator("#details")).to_be_focused()
    expect(page.locator("#details")).to_contain_text("above the threshold of")


def test_dark_follows_the_system_and_the_switch(visit, report, artifacts):
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = visit(report, color_scheme="dark")
    light = visit(report, color_scheme="light")
    dark_ground, light_ground = dark.evaluate(ground), light.evaluate(ground)
    assert dark_ground != light_ground
    scroll_through(dark)
    dark.screenshot(path=artifacts / "report-dark.png", full_page=True)
    scroll_through(light)
    tick = "getComputedStyle(document.querySelector('#chart-fan-out .xtick text')).fill"
    tick_before = light.evaluate(tick)
    light.locator("#theme").click()
    assert light.evaluate(ground) == dark_ground
    assert light.evaluate(tick) != tick_before
    light.reload()
    assert light.evaluate(ground) == dark_ground  # remembered


def test_paper_shows_all_charts_in_light_colours_without_controls(visit, report, artifacts):
    page = visit(report, color_scheme="dark")
    page.emulate_media(media="print")
    expect(page.locator(".chart .main-svg").first).to_be_attached()
    for chart in page.locator(".chart").all():
        expect(chart.locator(".main-svg").first).to_be_attached()
    assert page.locator(".bar").is_hidden()
    assert page.locator("#psi").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tick = "getComputedStyle(document.querySelector('#chart-fan-out .xtick text')).fill"
    assert page.evaluate(tick) == "rgb(17, 17, 17)"
    page.screenshot(path=artifacts / "report-print.png", full_page=True)
    paper = artifacts / "report.pdf"
    page.pdf(path=paper, format="A4")
    assert paper.stat().st_size > 50_000


def test_labels_that_are_markup_do_nothing(visit, tmp_path, artifacts):
    page = visit(write_report(hostile_study(), tmp_path / "report.html"))
    scroll_through(page)
    for node in page.locator('#tree [role="treeitem"]').all():
        node.locator(".row").first.click()
    page.locator("#search").fill("<img")
    page.locator("#search-results button").first.click()
    page.locator("#icicle .slice").nth(1).hover()
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main a[href^=javascript]").count() == 0
    expect(page.locator("#tree")).to_contain_text(HOSTILE[0])
    page.screenshot(path=artifacts / "report-hostile.png", full_page=True)


def test_axe_finds_no_serious_barrier(visit, report):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = visit(report, color_scheme="light")
    scroll_through(page)
    assert serious_barriers(axe.Axe().run(page).response) == []
    page.locator("#theme").click()
    page.locator("#search").fill("box")
    assert serious_barriers(axe.Axe().run(page).response) == []
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert "html-has-lang" in dict(serious_barriers(axe.Axe().run(page).response))  # it does look


def serious_barriers(response):
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
        for each in response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_seventeen_thousand_nodes_open_level_by_level(visit, tmp_path):
    study = large_study()
    page = visit(write_report(study, tmp_path / "report.html"))
    assert page.locator('#tree [role="treeitem"]').count() < 200
    page.locator("#search").fill(f"category {N_LARGE - 1}")
    page.keyboard.press("Enter")
    expect(page.locator(f"#node-{N_LARGE - 1}")).to_have_attribute("aria-selected", "true")
    page.locator("#psi").focus()
    page.keyboard.press("Home")
    expect(page.locator("#gone-heading")).to_contain_text(
        f"{study['candidates']['n_removed'][0]:,} of {study['data']['n_internal']:,}"
    )
    page.locator('input[name="view"][value="after"]').check()
    assert page.locator("#icicle .slice").count() < 1000
    assert page.locator('#tree [role="treeitem"]').count() < 2000


def test_the_command_writes_the_page_of_a_model(visit, taxofit, shop_model, tmp_path):
    done = taxofit("report", shop_model, "-o", "page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "model report in page.html" in done.stderr
    study = read_study(shop_model)
    page = visit(tmp_path / "page.html")
    expect(page.locator(".eyebrow")).to_contain_text("shop.csv · 60 rows")
    expect(page.locator("#methods pre")).to_contain_text("--text title --path category")
    assert page.locator('#tree [role="treeitem"]').count() >= len(
        [p for p in study["nodes"]["parent"] if p == 0]
    )
