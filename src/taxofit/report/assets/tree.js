// The taxonomy as a list that opens level by level, after the tree pattern of WAI-ARIA.

const CHUNK = 150; // children put into the page at once

const tree = document.getElementById("tree");
const opened = new Set();

const itemOf = (node) => document.getElementById(`node-${node}`);
const items = () => [...tree.querySelectorAll('[role="treeitem"]')];

function describe(node) {
  const rows = `${counted.format(nodes.rows[node])} rows`;
  return `${nameOf(node)}, ${rows}${state.removed[node] ? ", removed" : ""}`;
}

function makeItem(node, level, place, n) {
  const below = childrenOf(node);
  const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = colourOf(node === 0 ? null : difficulty(node));
  const row = make(
    "div",
    { class: "row" },
    make("span", { class: "twisty", "aria-hidden": "true" }, below.length ? "▸" : ""),
    swatch,
    make("span", { class: "name" }, nameOf(node)),
    state.removed[node] ? make("span", { class: "badge gone" }, "✕ removed") : null,
    below.length ? make("span", { class: "count" }, counted.format(below.length)) : null,
    make("span", { class: "number" }, counted.format(nodes.rows[node])),
  );
  const item = make(
    "li",
    {
      id: `node-${node}`,
      role: "treeitem",
      "aria-label": describe(node),
      "aria-level": level,
      "aria-posinset": place,
      "aria-setsize": n,
      "aria-selected": String(node === state.selected),
      "aria-expanded": below.length ? "false" : null,
      tabindex: "-1",
    },
    row,
  );
  item.dataset.node = node;
  if (opened.has(node) && below.length) open(item);
  return item;
}

function open(item) {
  const node = Number(item.dataset.node);
  const below = childrenOf(node);
  if (!below.length || item.getAttribute("aria-expanded") === "true") return;
  opened.add(node);
  item.setAttribute("aria-expanded", "true");
  const group = make("ul", { role: "group" });
  item.append(group);
  fill(group, below, 0, Number(item.getAttribute("aria-level")) + 1);
}

// Puts the next children into a group; the rest waits behind a last item.
function fill(group, below, from, level) {
  const to = Math.min(from + CHUNK, below.length);
  for (let k = from; k < to; k++) group.append(makeItem(below[k], level, k + 1, below.length));
  if (to === below.length) return;
  const text = `Show ${counted.format(Math.min(CHUNK, below.length - to))} of ${counted.format(below.length - to)} more`;
  const more = make(
    "li",
    { role: "treeitem", class: "more", "aria-level": level, "aria-selected": "false", tabindex: "-1" },
    make("div", { class: "row" }, text),
  );
  more.loadMore = () => {
    fill(group, below, to, level);
    const next = more.nextElementSibling;
    more.remove();
    focusItem(next);
  };
  group.append(more);
}

function close(item) {
  opened.delete(Number(item.dataset.node));
  item.setAttribute("aria-expanded", "false");
  item.querySelector(":scope > ul")?.remove();
}

function focusItem(item) {
  tree.querySelectorAll('[tabindex="0"]').forEach((other) => (other.tabIndex = -1));
  item.tabIndex = 0;
  item.focus();
}

// Opens everything above a node, so that its item exists.
function reveal(node) {
  const path = shownPath(node);
  if (nodes.has_virtual_root) path.unshift(0);
  for (const above of path.slice(0, -1)) {
    const item = itemOf(above);
    if (item == null) return null;
    open(item);
    const next = path[path.indexOf(above) + 1];
    while (itemOf(next) == null) {
      const more = item.querySelector(":scope > ul > .more");
      if (more == null) return null;
      const focused = document.activeElement;
      more.loadMore();
      focused?.focus();
    }
  }
  return itemOf(node);
}

function select(node) {
  change({ selected: node });
  const item = reveal(node);
  if (item == null) return;
  tree.querySelectorAll('[tabindex="0"]').forEach((other) => (other.tabIndex = -1));
  item.tabIndex = 0;
  // Only the list moves, never the page under the reader.
  const row = item.querySelector(".row").getBoundingClientRect();
  const frame = tree.getBoundingClientRect();
  if (row.top < frame.top || row.bottom > frame.bottom)
    tree.scrollTop += row.top - frame.top - frame.height / 3;
}

function showTree() {
  const focused = tree.contains(document.activeElement);
  const top = tree.scrollTop;
  opened.add(0);
  tree.replaceChildren(makeItem(0, 1, 1, 1));
  const current = (state.selected != null && itemOf(state.selected)) || itemOf(0);
  current.tabIndex = 0;
  tree.scrollTop = top;
  if (focused) current.focus();
}

function onTreeKey(event) {
  const item = document.activeElement.closest('[role="treeitem"]');
  if (item == null || event.ctrlKey || event.metaKey || event.altKey) return;
  const visible = items();
  const at = visible.indexOf(item);
  const expanded = item.getAttribute("aria-expanded");
  const above = item.parentElement.closest('[role="treeitem"]');
  const go = (target) => target && focusItem(target);
  const moves = {
    ArrowDown: () => go(visible[at + 1]),
    ArrowUp: () => go(visible[at - 1]),
    ArrowRight: () => (expanded === "false" ? open(item) : expanded === "true" && go(visible[at + 1])),
    ArrowLeft: () => (expanded === "true" ? close(item) : go(above)),
    Home: () => go(visible[0]),
    End: () => go(visible.at(-1)),
    Enter: () => choose(item),
    " ": () => choose(item),
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  moves[event.key]();
}

function choose(item) {
  if (item.loadMore) item.loadMore();
  else select(Number(item.dataset.node));
}

function onTreeClick(event) {
  const item = event.target.closest('[role="treeitem"]');
  if (item == null) return;
  const isOpen = item.getAttribute("aria-expanded") === "true";
  if (event.target.closest(".twisty") && isOpen) close(item);
  else if (!item.loadMore) open(item);
  focusItem(item);
  choose(item);
}

function startTree() {
  document.getElementById("legend-scale").append(...SCALES.light.map(() => make("i")));
  const paint = () => {
    document
      .querySelectorAll("#legend-scale i")
      .forEach((swatch, k) => (swatch.style.background = SCALES[themeNow()][k]));
    showTree();
  };
  tree.addEventListener("keydown", onTreeKey);
  tree.addEventListener("click", onTreeClick);
  watch((changes) => {
    if ("candidate" in changes || "view" in changes) showTree();
    if ("selected" in changes) {
      tree
        .querySelectorAll('[aria-selected="true"]')
        .forEach((item) => item.setAttribute("aria-selected", "false"));
      itemOf(state.selected)?.setAttribute("aria-selected", "true");
    }
  });
  document.addEventListener("themechange", paint);
  paint();
}
