// Light, dark, or as the system is. Streamlit keeps the choice a path (1.67: stActiveTheme-<path>-v2), so that
// another page would open as before: here it is kept for every page, and one choice holds everywhere.

const THEMES = ["System", "Light", "Dark"];
const themeKey = (path) => `stActiveTheme-${path}-v2`;

function chosenTheme() {
  try {
    const theme = JSON.parse(localStorage.getItem(themeKey(location.pathname)));
    return THEMES.includes(theme) ? theme : "System";
  } catch {
    return "System";
  }
}

const systemTheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "Dark" : "Light");

// One click changes what is seen: first to the other theme, then back, then to the system's.
function nextTheme() {
  const [chosen, system] = [chosenTheme(), systemTheme()];
  const other = system === "Dark" ? "Light" : "Dark";
  return { System: other, [other]: system, [system]: "System" }[chosen];
}

function chooseTheme(theme) {
  const folder = location.pathname.replace(/[^/]*$/, "");
  for (const page of toolbar.pages) localStorage.setItem(themeKey(folder + page), JSON.stringify(theme));
  localStorage.setItem(themeKey(location.pathname), JSON.stringify(theme));
  if (!applyTheme(theme)) location.reload();
  showTheme();
}

// Streamlit has no call for it: the function that its own settings use stands in the properties of its root.
function applyTheme(theme) {
  const root = document.getElementById("root");
  const key = root && Object.keys(root).find((name) => name.startsWith("__reactContainer$"));
  const waiting = key ? [root[key]] : [];
  for (let looked = 0; waiting.length && looked < 500; looked++) {
    const node = waiting.pop();
    const themes = node.memoizedProps?.theme;
    if (themes?.setTheme && themes.availableThemes) {
      const names = { System: /system|auto/i, Light: /light/i, Dark: /dark/i };
      const match = themes.availableThemes.find(({ name }) => names[theme].test(name));
      if (match) themes.setTheme(match);
      return Boolean(match);
    }
    if (node.sibling) waiting.push(node.sibling);
    if (node.child) waiting.push(node.child);
  }
  return false;
}

function showTheme() {
  const button = toolbar.part('[data-does="theme"]');
  const words = { System: "auto", Light: "light", Dark: "dark" }[chosenTheme()];
  if (button) {
    button.textContent = words;
    button.setAttribute("aria-label", `theme: ${words}`);
  }
}
