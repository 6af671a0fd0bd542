// Figures made in Python, drawn when they come into view.

const CONFIG = { displayModeBar: false, responsive: true };
const drawn = new Set();

const NARROW = 440; // pixels, below which a heat map has no room for its scale

function drawChart(place) {
  const figure = figures[place.dataset.figure];
  const traces = themedTraces(figure.data);
  const layout = themedLayout(figure.layout);
  if (place.clientWidth < NARROW && traces[0].type === "heatmap") {
    traces[0].showscale = false;
    layout.xaxis.tickangle = -90;
    layout.xaxis.tickfont = layout.yaxis.tickfont = { size: 9.5 };
  }
  drawn.add(place);
  Plotly.react(place, traces, layout, CONFIG);
  document.dispatchEvent(new CustomEvent("chartdrawn", { detail: place.dataset.figure }));
}

function ownCharts() {
  return [...document.querySelectorAll(".chart:not(#icicle)")];
}

function startCharts() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((each) => each.isIntersecting)) {
        seen.unobserve(entry.target);
        if (!drawn.has(entry.target)) drawChart(entry.target);
      }
    },
    { rootMargin: "300px" },
  );
  ownCharts().forEach((place) => seen.observe(place));
  document.addEventListener("themechange", () =>
    ownCharts()
      .filter((place) => drawn.has(place))
      .forEach(drawChart),
  );
  // On paper every chart is there, in light colours and as wide as the paper allows.
  printing.addEventListener("change", () => {
    ownCharts().forEach(drawChart);
    document.querySelectorAll(".chart.js-plotly-plot").forEach((place) => Plotly.Plots.resize(place));
    document.dispatchEvent(new CustomEvent("themechange"));
  });
}
