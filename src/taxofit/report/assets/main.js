// The explorer works at once; figures follow when plotly, the last script, has been read.

startTheme();
if (study) {
  startDetails();
  startTree();
  startThreshold();
  startSearch();
  // Something to look at from the start: the hardest node that went, or the largest top.
  const byDifficulty = [...nodes.removed].sort((a, b) => nodes.objective[b] - nodes.objective[a]);
  const byRows = [...childrenBefore[0]].sort((a, b) => nodes.rows[b] - nodes.rows[a]);
  select(byDifficulty[0] ?? byRows[0]);
}
addEventListener("DOMContentLoaded", () => {
  startCharts();
  if (study) startIcicle();
});
