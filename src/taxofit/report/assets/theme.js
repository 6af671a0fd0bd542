// Light and dark, for the page and for figures drawn with plotly.

const root = document.documentElement;
const printing = matchMedia("print");
const SCALES = {
  light: ["#f4f1e8", "#f6d693", "#ef9f4b", "#cb5c1b", "#7c2a06"],
  dark: ["#26303a", "#5a4a33", "#a86b2c", "#ee9440", "#ffd596"],
};

const themeNow = () => (printing.matches ? "light" : root.dataset.theme);
const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();

function setTheme(theme) {
  root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(theme === "dark"));
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", theme === "dark" ? "Use light colours" : "Use dark colours");
  document.dispatchEvent(new CustomEvent("themechange"));
}

function startTheme() {
  setTheme(root.dataset.theme);
  document.getElementById("theme").addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    try {
      localStorage.setItem("taxofit-theme", theme);
    } catch {
      // Chosen for this visit only.
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    setTheme(event.matches ? "dark" : "light");
  });
}

// The colour of a difficulty, between the five of the scale.
function colourOf(value) {
  if (value == null) return variable("--line");
  const scale = SCALES[themeNow()];
  // The root keeps the few hardest nodes from making all others look alike.
  const share =
    Math.sqrt(Math.min(Math.max((value - EASIEST) / (HARDEST - EASIEST), 0), 1)) * (scale.length - 1);
  const low = Math.min(Math.floor(share), scale.length - 2);
  const [from, to] = [scale[low], scale[low + 1]].map((hex) =>
    [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)),
  );
  const mixed = from.map((part, k) => Math.round(part + (to[k] - part) * (share - low)));
  return `rgb(${mixed.join(", ")})`;
}

// Black or white, whichever is easier to read on a colour.
function inkOn(colour) {
  const [r, g, b] = colour.startsWith("#")
    ? [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16))
    : colour.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#14181c" : "#ffffff";
}

// A figure's layout in the colours of the page.
function themedLayout(layout) {
  const [ink, line, panel] = ["--ink", "--line", "--panel"].map(variable);
  const themed = {
    ...layout,
    autosize: true,
    dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...layout.font, color: ink, size: 12.5 },
    hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: ink } },
  };
  for (const key of Object.keys(layout)
    .filter((name) => /^[xy]axis\d*$/.test(name))
    .concat("xaxis", "yaxis")) {
    themed[key] = { ...layout[key], gridcolor: line, zerolinecolor: line, linecolor: line };
  }
  return themed;
}

const usesDifficulty = (trace) => trace.meta === "difficulty"; // as Python marked it

function themedTraces(traces) {
  const scale = SCALES[themeNow()].map((colour, k, all) => [k / (all.length - 1), colour]);
  return traces.map((trace) => (usesDifficulty(trace) ? { ...trace, colorscale: scale } : { ...trace }));
}
