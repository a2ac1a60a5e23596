// One component, mounted by app.py on every page: this joins the parts and keeps what they share.

const toolbar = {
  root: document.body,
  pages: new Set(),
  page: "", // that the server has drawn last
  found: null,
  trigger: () => {},
  part: (selector) => toolbar.root.querySelector(selector),
};
const DOES = { find: () => openPalette(), copy: copyLink, theme: () => chooseTheme(nextTheme()), keys: () => openKeys() };

// Called by Streamlit at each run with the data of `mount` in component.py.
export default function ({ data, parentElement, setTriggerValue }) {
  toolbar.trigger = setTriggerValue;
  toolbar.pages = new Set(data.pages);
  toolbar.page = data.page;
  toolbar.found = data.found;
  if (toolbar.root !== parentElement || !parentElement.dataset.listens) listen(parentElement);
  showTheme();
  foundArrived();
}

function listen(root) {
  toolbar.root = root;
  root.dataset.listens = "yes";
  window.profilerToolbar?.abort(); // of an earlier mount or version of this file
  const listening = (window.profilerToolbar = new AbortController());
  for (const button of root.querySelectorAll("[data-does]")) {
    button.addEventListener("click", () => DOES[button.dataset.does](button), { signal: listening.signal });
  }
  listenToPalette(toolbar.part(".k-palette"));
  listenToKeys(listening.signal);
  tickRanges(listening.signal);
  followLinks(listening.signal);
  offerExports(listening.signal);
  rememberZooms(listening.signal);
  keepTitlesInSight(listening.signal);
  foldOnPhone(listening.signal);
  sayWhenDrawn(listening.signal);
}
