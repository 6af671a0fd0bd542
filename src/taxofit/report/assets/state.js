// What is shown: a threshold, the taxonomy before or after it, and a node.

const FITTED = null;
const fittedRemoved = new Uint8Array(nodes?.parent.length ?? 0);
nodes?.removed.forEach((node) => (fittedRemoved[node] = 1));

const state = { candidate: FITTED, view: "before", selected: null, zoomed: 0, removed: fittedRemoved };
const watchers = [];

// Calls a function after each change, with the names of what changed.
const watch = (watcher) => watchers.push(watcher);

function change(changes) {
  Object.assign(state, changes);
  if ("candidate" in changes) state.removed = removedAt(state.candidate);
  if (state.view === "after" && state.removed[state.zoomed]) state.zoomed = keptAbove(state.zoomed);
  watchers.forEach((watcher) => watcher(changes));
}

function removedAt(candidate) {
  if (candidate === FITTED) return fittedRemoved;
  const threshold = study.candidates.threshold[candidate];
  return Uint8Array.from(nodes.objective, (objective, node) => isInner(node) && objective > threshold);
}

function keptAbove(node) {
  while (state.removed[node]) node = nodes.parent[node];
  return node;
}

// The children of a node as shown: after repair, those of a removed child stand in its place.
function childrenOf(node) {
  if (state.view === "before") return childrenBefore[node];
  return childrenBefore[node].flatMap((child) => (state.removed[child] ? childrenOf(child) : [child]));
}

// The way down to a node as shown.
const shownPath = (node) => pathOf(node).filter((each) => state.view === "before" || !state.removed[each]);
