// The keyboard: what each key does is listed once, in KEYS, and the help is made of it.

const KEYS = [
  ["/", "find a version, kernel, metric or run", () => openPalette()],
  ["Ctrl-K", "the same, and actions"],
  ["j", "next row", () => moveRow(1)],
  ["k", "previous row", () => moveRow(-1)],
  ["Enter", "open what has the focus"],
  ["x", "tick the row", () => tickRow()],
  ["X", "tick every row from the one ticked before to this one", () => tickRow(true)],
  ["e", "export the chart or table in view; again: the next one", () => exportNext()],
  ["s", "swap the two sides", () => clickMarked("s")],
  ["[", "previous pair, launch or page of rows", () => clickMarked("[")],
  ["]", "next pair, launch or page of rows", () => clickMarked("]")],
  ["?", "these keys", () => openKeys()],
  ["Esc", "close, and take the focus away", () => dropFocus()],
];
const TYPED_INTO = 'textarea,select,[contenteditable="true"],[role="combobox"],[role="grid"],.stDataFrame canvas';
const QUIET_INPUTS = ["checkbox", "radio", "button", "submit", "range"];

const main = () => document.querySelector('[data-testid="stMain"]') ?? document.body;
const isSeen = (element) => element.getClientRects().length > 0;

function isTypedInto(element) {
  if (element.closest(TYPED_INTO)) return true;
  return element.tagName === "INPUT" && !QUIET_INPUTS.includes(element.type);
}

function listenToKeys(signal) {
  document.addEventListener(
    "keydown",
    (event) => {
      const target = event.target instanceof Element ? event.target : document.body;
      const isPalette = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
      if (event.defaultPrevented || event.isComposing) return;
      if (isPalette) return act(event, () => openPalette());
      if (event.ctrlKey || event.metaKey || event.altKey || isTypedInto(target) || openDialog()) return;
      const key = event.key === "Escape" ? "Esc" : event.key;
      const [, , does] = KEYS.find(([name]) => name === key) ?? [];
      if (does) act(event, does);
      else if (key.length === 1 && marked(key)) act(event, () => clickMarked(key));
    },
    { signal, capture: true },
  );
}

function act(event, does) {
  event.preventDefault();
  event.stopPropagation();
  does();
}

const openDialog = () => document.querySelector('dialog[open],[role="dialog"]:not(dialog)');

// What a page marks with data-key answers that key.
function marked(key) {
  const places = [...main().querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
  return places.find(isSeen);
}

function clickMarked(key) {
  marked(key)?.click();
}

function rows() {
  const all = main().querySelectorAll(".k-box tbody tr:not(.g):not(.last)");
  return [...all].filter(isSeen);
}

function rowOfFocus() {
  return document.activeElement?.closest?.(".k-box tbody tr");
}

function moveRow(step) {
  const all = rows();
  if (!all.length) return;
  const from = all.indexOf(rowOfFocus());
  let at = from + step;
  if (from < 0) {
    const top = main().getBoundingClientRect().top;
    const selected = all.findIndex((row) => row.matches(".sel"));
    const inView = all.findIndex((row) => row.getBoundingClientRect().top >= top);
    at = selected >= 0 ? selected : Math.max(inView, 0);
  }
  const row = all[Math.min(Math.max(at, 0), all.length - 1)];
  const place = [...row.querySelectorAll("a[href],button")].find(isSeen) ?? row;
  if (place === row) row.tabIndex = -1;
  place.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function dropFocus() {
  hideExports();
  document.activeElement?.blur?.();
}

function openKeys() {
  const dialog = toolbar.part(".k-keys");
  const list = dialog.querySelector("dl");
  list.replaceChildren();
  for (const [key, words] of KEYS) {
    const term = document.createElement("dt");
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    list.append(term, Object.assign(document.createElement("dd"), { textContent: words }));
  }
  dialog.showModal();
}
