// Find a node by any part of its path.

const N_RESULTS = 30;
const field = document.getElementById("search");
const results = document.getElementById("search-results");

function matches(text) {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return [];
  const lower = nodes.name.map((name) => name.toLowerCase());
  const last = parts.at(-1);
  const found = [];
  for (let node = 1; node < lower.length; node++) {
    if (!lower[node].includes(last) && !parts.every((part) => lower[node].includes(part))) continue;
    const path = pathOf(node)
      .map((each) => lower[each])
      .join(" ");
    if (parts.every((part) => path.includes(part))) found.push(node);
  }
  const whole = parts.join(" ");
  const rank = (node) =>
    [lower[node] === whole, lower[node].startsWith(whole), lower[node].includes(whole), true].indexOf(true);
  return found.sort((a, b) => rank(a) - rank(b) || nodes.rows[b] - nodes.rows[a]);
}

function showResults() {
  const found = matches(field.value);
  document.getElementById("search-count").textContent = field.value.trim() ? `${found.length} found` : "";
  results.hidden = !field.value.trim();
  const lines = found.slice(0, N_RESULTS).map((node) => {
    const above = pathOf(node).slice(0, -1).map(nameOf).join(" › ");
    const button = make(
      "button",
      { type: "button", onclick: () => pick(node) },
      make("b", {}, nameOf(node)),
      state.removed[node] ? make("span", { class: "badge gone" }, "✕ removed") : null,
      make("small", {}, above),
    );
    button.dataset.node = node;
    return make("li", {}, button);
  });
  if (found.length > N_RESULTS)
    lines.push(
      make("li", { class: "muted" }, `and ${counted.format(found.length - N_RESULTS)} more: type on`),
    );
  if (!found.length) lines.push(make("li", { class: "muted" }, "Nothing has this name."));
  results.replaceChildren(...lines);
}

function pick(node) {
  results.hidden = true;
  field.value = nameOf(node);
  // A node that repair took away is only there before it.
  if (state.view === "after" && state.removed[node]) setView("before");
  change({ zoomed: childrenOf(node).length ? node : shownAbove(node) });
  select(node);
  field.focus();
}

// Selects a node and brings the reader to what is known about it.
function showInExplorer(node) {
  if (state.view === "after" && state.removed[node]) setView("before");
  select(node);
  const details = document.getElementById("details");
  details.parentElement.scrollIntoView({ block: "start" });
  details.focus({ preventScroll: true });
}

function setView(view) {
  document.querySelector(`input[name="view"][value="${view}"]`).checked = true;
  change({ view });
}

function startSearch() {
  field.addEventListener("input", showResults);
  const box = field.closest(".search");
  box.addEventListener("keydown", (event) => {
    const buttons = [...results.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const moves = {
      ArrowDown: () => buttons[at + 1]?.focus(),
      ArrowUp: () => (at > 0 ? buttons[at - 1] : field).focus(),
      Escape: () => {
        results.hidden = true;
        field.focus();
      },
    };
    if (event.key === "Enter" && at < 0 && buttons.length) pick(Number(buttons[0].dataset.node));
    else if (event.key in moves) moves[event.key]();
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) results.hidden = true;
  });
  for (const choice of document.querySelectorAll('input[name="view"]')) {
    choice.addEventListener("change", () => change({ view: choice.value }));
  }
}
