// The data of the page, and the few things that every part needs.
"use strict";

const { figures, study } = JSON.parse(document.getElementById("data").textContent);

// Makes an element. Texts are set as texts, so that no label can ever be markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const counted = new Intl.NumberFormat("en");
const percent = (fraction) => `${(100 * fraction).toFixed(2)} %`;
const shorten = (text, n) => (text.length <= n ? text : `${text.slice(0, n - 1).trimEnd()}…`);
// plotly reads a little HTML in texts; a label shows as it is.
const plainText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function significant(number) {
  return Math.abs(number) >= 1000 ? counted.format(Math.round(number)) : String(+number.toPrecision(4));
}

function shownScore(name, value) {
  return name === "tree_error" ? value.toFixed(3) : percent(value);
}

// The tree: nodes come in breadth-first order, so children of a node stand side by side.
const nodes = study?.nodes;
const childrenBefore = nodes?.parent.map(() => []);
nodes?.parent.forEach((parent, node) => {
  if (parent >= 0) childrenBefore[parent].push(node);
});
const isInner = (node) => node > 0 && childrenBefore[node].length > 0;

function pathOf(node) {
  const path = [];
  for (let at = node; at > 0 || (at === 0 && !nodes.has_virtual_root); at = nodes.parent[at])
    path.unshift(at);
  return path;
}

function isUnder(node, above) {
  while (node > above) node = nodes.parent[node];
  return node === above;
}

const nameOf = (node) => (node === 0 && nodes.has_virtual_root ? "All categories" : nodes.name[node]);

// (f* - µ)/σ: Global-INF removes an inner node where ψ is below this.
function difficulty(node) {
  const objective = nodes.objective[node];
  const { mean, deviation } = study.candidates;
  return objective == null || !deviation ? null : (objective - mean) / deviation;
}

// Where the scale of colours ends; the same rule as in Python's figure of the taxonomy.
const EASIEST = -1;
const HARDEST = nodes?.parent.reduce(
  (most, _, node) => (isInner(node) ? Math.max(most, difficulty(node) ?? most) : most),
  3,
);
