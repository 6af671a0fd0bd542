// Everything that is known about one node.

const N_CHILDREN_EXPLAINED = 6;
const N_EXAMPLES = { wrong: 4, right: 2 };

function link(node) {
  return make("button", { type: "button", class: "link", onclick: () => select(node) }, nameOf(node));
}

function fact(name, value, hint) {
  return make("div", { title: hint }, make("dt", {}, name), make("dd", {}, value));
}

function verdict(node) {
  const objective = nodes.objective[node];
  if (node === 0) return "The root holds everything and is never removed.";
  if (objective == null) return "No rows to measure it on.";
  const measured = `f* is ${significant(objective)}, higher than that of ${nodes.percentile[node]} % of all nodes`;
  if (!isInner(node)) return `A leaf: never removed. Its ${measured}.`;
  if (state.candidate === FITTED && study.method !== "global-inf") {
    return `${state.removed[node] ? "Removed" : "Kept"} by the fitted method. Its ${measured}.`;
  }
  const psi = state.candidate === FITTED ? study.psi : study.candidates.psi[state.candidate];
  const threshold = study.candidates.mean + psi * study.candidates.deviation;
  return state.removed[node]
    ? `Removed: its ${measured}, and above the threshold of ${significant(threshold)}. Its rows are hard to tell from the rest.`
    : `Kept: its ${measured}, and not above the threshold of ${significant(threshold)}.`;
}

function factsOf(node) {
  const n = nodes.validation_rows[node];
  const limit = difficulty(node);
  const found = (count) => (n ? `${counted.format(count)} (${Math.round((100 * count) / n)} %)` : "–");
  return make(
    "dl",
    { class: "facts" },
    fact("training rows", counted.format(nodes.rows[node])),
    fact("held-out rows", counted.format(n)),
    fact(
      "found before",
      found(nodes.found_before[node]),
      "held-out rows that end under this node, original taxonomy",
    ),
    fact(
      "found after",
      found(nodes.found_after[node]),
      "held-out rows that end under this node, fitted model",
    ),
    nodes.objective[node] == null ? null : fact("objective f*", significant(nodes.objective[node])),
    isInner(node) && limit != null
      ? fact("goes where ψ is", limit > 0 ? `below ${limit.toFixed(2)}` : "never")
      : null,
  );
}

function confusionOf(node) {
  const rivals = study.confusion[state.view][node] ?? [];
  const heading = make("h4", {}, `Most confused with, ${state.view} repair`);
  if (!rivals.length)
    return [heading, make("p", { class: "muted" }, "None of its held-out rows went elsewhere.")];
  const most = rivals[0][1];
  const bars = rivals.map(([other, n]) => {
    const bar = make("span", { class: "bar-fill" });
    bar.style.width = `${(100 * n) / most}%`;
    return make(
      "li",
      {},
      link(other),
      make("span", { class: "bar-track", "aria-hidden": "true" }, bar),
      make("span", { class: "number" }, n === 1 ? "1 row" : `${counted.format(n)} rows`),
    );
  });
  return [heading, make("ul", { class: "bars" }, ...bars)];
}

function words(list, kind) {
  return list.map(([word, weight]) =>
    make(
      "li",
      { class: kind, title: `weight ${weight}` },
      make("span", { "aria-hidden": "true" }, kind === "for" ? "+" : "−"),
      ` ${word}`,
    ),
  );
}

function featuresOf(node) {
  const heading = make("h4", {}, "Decided by");
  const own = study.features[node];
  if (own)
    return [
      heading,
      make("ul", { class: "words" }, ...words(own.for, "for"), ...words(own.against, "against")),
    ];
  if (node === 0) return [];
  if (!fittedRemoved[node])
    return [
      heading,
      make(
        "p",
        { class: "muted" },
        "Its weights are not listed: it has no training rows, or the model is too large to list all.",
      ),
    ];
  const explained = childrenBefore[node]
    .filter((child) => study.features[child])
    .slice(0, N_CHILDREN_EXPLAINED);
  const lines = explained.map((child) =>
    make(
      "li",
      {},
      link(child),
      make("ul", { class: "words" }, ...words(study.features[child].for.slice(0, 4), "for")),
    ),
  );
  return [
    heading,
    make(
      "p",
      { class: "muted" },
      "Removed, so the model keeps no weights of its own for it. Its children are decided by:",
    ),
    make("ul", { class: "plain" }, ...lines),
  ];
}

function examplesOf(node) {
  const walk = state.view === "before" ? 3 : 4;
  const under = study.examples.filter((example) => isUnder(example[2], node));
  if (!under.length) return [];
  const isWrong = (example) => !isUnder(example[walk], node);
  const wrong = under.filter(isWrong);
  const right = under.filter((example) => !isWrong(example));
  const shown = [...wrong.slice(0, N_EXAMPLES.wrong), ...right.slice(0, N_EXAMPLES.right)];
  const lines = shown.map((example) => {
    const [text, row, leaf] = example;
    const strayed = isWrong(example);
    const given = strayed ? [" given ", link(example[walk])] : [" found"];
    const truth = leaf === node ? [] : [link(leaf), ","];
    return make(
      "li",
      { class: strayed ? "wrong" : "right" },
      make("span", { class: "mark", "aria-hidden": "true" }, strayed ? "✗" : "✓"),
      make(
        "div",
        {},
        make("p", {}, text ?? `Row ${counted.format(row + 1)}`),
        make("p", { class: "muted" }, ...truth, ...given),
      ),
    );
  });
  return [make("h4", {}, `Held-out rows, ${state.view} repair`), make("ul", { class: "examples" }, ...lines)];
}

function showDetails() {
  const place = document.getElementById("details");
  const node = state.selected;
  if (node == null) return;
  const badge = state.removed[node]
    ? make("span", { class: "badge gone" }, "✕ removed")
    : make("span", { class: "badge" }, isInner(node) ? "kept" : node === 0 ? "root" : "leaf");
  const path = pathOf(node)
    .slice(0, -1)
    .flatMap((above) => [link(above), make("span", { "aria-hidden": "true" }, " › ")]);
  const zoom =
    childrenBefore[node].length && !(state.view === "after" && state.removed[node])
      ? make(
          "button",
          { type: "button", class: "quiet", onclick: () => change({ zoomed: node }) },
          "Zoom the chart to it",
        )
      : null;
  place.replaceChildren(
    ...(path.length ? [make("p", { class: "crumbs" }, ...path)] : []),
    make("h3", {}, nameOf(node), " ", badge),
    make("p", {}, verdict(node)),
    factsOf(node),
    ...confusionOf(node),
    ...featuresOf(node),
    ...examplesOf(node),
    ...(zoom ? [zoom] : []),
  );
}

function startDetails() {
  watch((changes) => {
    if (!("zoomed" in changes) || "selected" in changes) showDetails();
  });
  showDetails();
}
