// The slider: which nodes go at a threshold, and what the validation scores become.

const N_CHIPS = 60;
const CURVE = "threshold-curve";
const slider = document.getElementById("psi");

// The step of the slider that the fitted model stands at; -1 where it used another method.
const fittedStep = study?.method === "global-inf" ? study.candidates.psi.indexOf(study.psi) : -1;

const fittedText = () =>
  typeof study.psi === "number" ? `${study.psi} (as fitted)` : `– (fitted by ${study.method})`;

function stepNow() {
  return state.candidate ?? (fittedStep >= 0 ? fittedStep : study.candidates.psi.length - 1);
}

function showScores() {
  const { candidates, original, fitted } = study;
  for (const place of document.querySelectorAll("[data-score]")) {
    const name = place.dataset.score;
    const value = state.candidate === FITTED ? fitted[name] : candidates[name][state.candidate];
    const gained = value - original[name];
    place.textContent = shownScore(name, value);
    const changed = document.querySelector(`[data-change="${name}"]`);
    const shown = name === "tree_error" ? Math.abs(gained).toFixed(3) : Math.abs(100 * gained).toFixed(2);
    const isSame = Number(shown) === 0;
    const isBetter = name === "tree_error" ? gained < 0 : gained > 0;
    changed.className = `tile-change ${isSame ? "same" : isBetter ? "better" : "worse"}`;
    const words = isSame ? "as the original" : gained > 0 ? `+${shown}` : `−${shown}`;
    changed.replaceChildren(
      make("span", { "aria-hidden": "true" }, isSame ? "= " : gained > 0 ? "▲ " : "▼ "),
      words,
    );
  }
}

function showGone(limit = N_CHIPS) {
  const gone = [];
  state.removed.forEach((isRemoved, node) => isRemoved && gone.push(node));
  gone.sort((a, b) => nodes.objective[b] - nodes.objective[a]);
  const n = `${counted.format(gone.length)} of ${counted.format(study.data.n_internal)} inner categories`;
  document.getElementById("gone-heading").textContent = gone.length
    ? `${n} go, hardest first`
    : "No category goes";
  const chips = gone.slice(0, limit).map((node) =>
    make(
      "button",
      {
        type: "button",
        class: "chip",
        onclick: () => showInExplorer(node),
        title: pathOf(node).map(nameOf).join(" › "),
      },
      make("span", { "aria-hidden": "true" }, "✕ "),
      nameOf(node),
    ),
  );
  if (gone.length > limit)
    chips.push(
      make(
        "button",
        { type: "button", class: "quiet", onclick: () => showGone(limit + 500) },
        `and ${counted.format(gone.length - limit)} more`,
      ),
    );
  document.getElementById("gone").replaceChildren(...chips);
}

function showStep() {
  const psi = study.candidates.psi[stepNow()];
  const isOther = state.candidate === FITTED && fittedStep < 0;
  slider.value = stepNow();
  document.getElementById("psi-value").textContent = isOther ? fittedText() : psi.toFixed(1);
  const n = state.removed.reduce((sum, each) => sum + each, 0);
  slider.setAttribute(
    "aria-valuetext",
    isOther ? "as fitted" : `ψ ${psi.toFixed(1)}, ${n} categories removed`,
  );
  document.getElementById("psi-reset").disabled = state.candidate === FITTED;
}

// A line on the curve at the slider's ψ, in the figure itself, so that it survives a redraw.
function markCurve() {
  const figure = figures[CURVE];
  const x = study.candidates.psi[stepNow()];
  const isShown = !(state.candidate === FITTED && fittedStep < 0);
  figure.layout.shapes = isShown
    ? [
        {
          type: "line",
          x0: x,
          x1: x,
          yref: "paper",
          y0: 0,
          y1: 1,
          line: { color: variable("--accent"), width: 2, dash: "dot" },
        },
      ]
    : [];
  const place = document.getElementById(`chart-${CURVE}`);
  if (place && drawn.has(place)) Plotly.relayout(place, { shapes: figure.layout.shapes });
}

function startThreshold() {
  if (slider == null) return;
  slider.addEventListener("input", () => {
    const step = Number(slider.value);
    change({ candidate: step === fittedStep ? FITTED : step });
  });
  document.getElementById("psi-reset").addEventListener("click", () => change({ candidate: FITTED }));
  if (fittedStep >= 0) {
    const mark = document.getElementById("psi-fitted");
    mark.hidden = false;
    mark.style.setProperty("--share", fittedStep / (study.candidates.psi.length - 1));
  }
  const show = () => [showStep, showScores, showGone, markCurve].forEach((part) => part());
  watch((changes) => {
    if ("candidate" in changes) show();
  });
  document.addEventListener("themechange", markCurve);
  show();
}
