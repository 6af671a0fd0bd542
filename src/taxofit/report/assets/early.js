// Before anything is painted: the theme that was chosen here last, or else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("taxofit-theme");
  } catch {
    // A page opened from a file may be kept from storage.
  }
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = chosen === "dark" || chosen === "light" ? chosen : system;
})();
