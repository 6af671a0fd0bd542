// The icicle that Python styled, filled with the part of the taxonomy that is looked at.

const N_LEVELS = 2; // below the zoomed node
const SMALLEST_SHARE = 0.004; // of its rows; narrower sectors are put together

const icicle = document.getElementById("icicle");

function sectorsUnder(top) {
  const rows = (node) => Math.max(nodes.rows[node], 0.1);
  const smallest = SMALLEST_SHARE * rows(top);
  const sectors = [{ id: String(top), node: top, parent: "", value: 0 }];
  let shown = [top];
  for (let level = 0; level < N_LEVELS; level++) {
    const below = [];
    for (const node of shown) {
      const all = childrenOf(node);
      const large = all.filter((child) => rows(child) >= smallest);
      for (const child of large) {
        const isCut = level === N_LEVELS - 1 || childrenOf(child).length === 0;
        sectors.push({
          id: String(child),
          node: child,
          parent: String(node),
          value: isCut ? rows(child) : 0,
        });
      }
      const small = all.length - large.length;
      if (small) {
        const left = rows(node) - large.reduce((sum, child) => sum + rows(child), 0);
        sectors.push({
          id: `${node}-more`,
          node: null,
          parent: String(node),
          value: Math.max(left, smallest / 2),
          small,
        });
      }
      below.push(...large);
    }
    shown = below;
  }
  return sectors;
}

function labelOf({ node, small }) {
  if (node == null) return `${counted.format(small)} more`;
  const text = (state.removed[node] ? "✕ " : "") + plainText(shorten(nameOf(node), 34));
  return node === state.selected ? `<b>${text}</b>` : text;
}

function hoverText({ node, small }) {
  if (node == null) return `${counted.format(small)} smaller ones`;
  const lines = [
    `<b>${plainText(shorten(nameOf(node), 60))}</b>`,
    `${counted.format(nodes.rows[node])} training rows`,
  ];
  if (nodes.objective[node] != null) lines.push(`f* higher than ${nodes.percentile[node]} % of nodes`);
  if (state.removed[node]) lines.push("✕ removed");
  return lines.join("<br>");
}

function drawIcicle() {
  const { data, layout } = figures.icicle;
  const sectors = sectorsUnder(state.zoomed);
  const isGone = ({ node }) => node != null && state.removed[node];
  const colours = sectors.map(({ node }) => colourOf(node ? difficulty(node) : null));
  const trace = {
    ...data[0],
    ids: sectors.map(({ id }) => id),
    parents: sectors.map(({ parent }) => parent),
    values: sectors.map(({ value }) => value),
    labels: sectors.map(labelOf),
    customdata: sectors.map(hoverText),
    marker: {
      ...data[0].marker,
      colors: colours,
      line: { color: variable("--panel"), width: 1 },
      pattern: {
        ...data[0].marker.pattern,
        shape: sectors.map((sector) => (isGone(sector) ? "/" : "")),
        bgcolor: colours,
        fgcolor: colours.map((colour) => `${inkOn(colour)}80`),
      },
    },
    root: { color: variable("--line") },
    textfont: { color: colours.map(inkOn), size: 13 },
  };
  Plotly.react(icicle, [trace], themedLayout(layout), CONFIG);
  if (!drawn.has(icicle)) {
    drawn.add(icicle);
    icicle.on("plotly_icicleclick", onSector);
  }
}

function onSector({ points: [point] }) {
  const node = Number(point.id);
  if (!Number.isNaN(node)) {
    if (node === state.zoomed) change({ zoomed: Math.max(shownAbove(node), 0) });
    else if (childrenOf(node).length) change({ zoomed: node });
    select(node);
  }
  return false; // the page zooms by itself, so that a large taxonomy is never drawn whole
}

function shownAbove(node) {
  const path = shownPath(node);
  return path.length > 1 ? path.at(-2) : 0;
}

function showZoomPath() {
  const path = nodes.has_virtual_root ? [0, ...shownPath(state.zoomed)] : shownPath(state.zoomed);
  const crumbs = [...new Set(path)].flatMap((node, k, all) =>
    k === all.length - 1
      ? [make("b", {}, nameOf(node))]
      : [
          make(
            "button",
            { type: "button", class: "link", onclick: () => change({ zoomed: node }) },
            nameOf(node),
          ),
          make("span", { "aria-hidden": "true" }, " › "),
        ],
  );
  document.getElementById("zoom-path").replaceChildren(...crumbs);
}

function startIcicle() {
  let isWaiting = false;
  const redraw = () => {
    showZoomPath();
    if (isWaiting || !drawn.has(icicle)) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      drawIcicle();
    });
  };
  watch(redraw);
  document.addEventListener("themechange", redraw);
  printing.addEventListener("change", drawIcicle); // paper does not wait for a frame
  showZoomPath();
  const seen = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      seen.disconnect();
      drawIcicle();
    },
    { rootMargin: "300px" },
  );
  seen.observe(icicle);
}
