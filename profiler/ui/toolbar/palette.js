// The palette: what the server finds in the index, and what can be done here and now.

const MOST_HERE = 8; // links, buttons and exports of the page that are listed
let askedLast = "";
let choices = []; // {label, option, does} in the order shown

function openPalette() {
  const dialog = toolbar.part(".k-palette");
  if (!dialog.open) dialog.showModal();
  const field = dialog.querySelector("input");
  field.value = "";
  field.focus();
  ask("");
}

function ask(text) {
  askedLast = text;
  drawChoices();
  clearTimeout(ask.timer);
  ask.timer = setTimeout(() => send(text), text ? 80 : 0);
}

// Until the server has begun with the page of the address, Streamlit would send the question with the page before,
// whose run the server drops or draws in place of the new page's (1.67).
function send(text) {
  if (isPageOnItsWay()) ask.timer = setTimeout(() => send(text), 20);
  else toolbar.trigger("query", { text });
}

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const holds = (label, text) => words(text).every((word) => label.toLowerCase().includes(word));

function actions() {
  const themes = THEMES.map((theme) => [`theme: ${theme.toLowerCase()}`, "", () => chooseTheme(theme)]);
  const exported = exportable().flatMap(({ name, forms }) =>
    Object.entries(forms).map(([form, save]) => [`export ${form}: ${name}`, "", () => save()]),
  );
  const general = [
    ["copy link to this view", "", () => copyLink(toolbar.part('[data-does="copy"]'))],
    ["keys", "?", () => openKeys()],
  ];
  return [...general, ...themes, ...exported];
}

// Buttons and links of the page by what they say, so that each can be reached by typing a part of it.
function placesHere() {
  const places = [...main().querySelectorAll("a[href],button,summary")];
  const seen = new Map();
  for (const place of places) {
    const label = (place.textContent.trim() || place.getAttribute("aria-label") || place.title || "").trim();
    if (label && isSeen(place) && !toolbar.root.contains(place) && !seen.has(label)) seen.set(label, place);
  }
  return [...seen].map(([label, place]) => [label, "", () => (place.focus(), place.click())]);
}

function drawChoices() {
  const list = toolbar.part("#k-found");
  const found = toolbar.found?.text === askedLast ? toolbar.found.groups : [];
  const groups = found.map(({ name, entries }) => [
    name,
    entries.map(({ label, detail, href }) => [label, detail, () => goTo(new URL(href, location.href)), href]),
  ]);
  const can = actions().filter(([label]) => holds(label, askedLast));
  groups.push(["actions", askedLast ? can : can.slice(0, 5)]);
  if (askedLast.length > 1) {
    const here = placesHere().filter(([label]) => holds(label, askedLast));
    groups.push(["on this page", here.slice(0, MOST_HERE)]);
  }
  choices = [];
  list.replaceChildren();
  for (const [name, entries] of groups) {
    if (!entries.length) continue;
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", name);
    group.append(Object.assign(document.createElement("div"), { className: "head", textContent: name, ariaHidden: "true" }));
    for (const [label, detail, does] of entries) {
      const option = document.createElement("div");
      option.id = `k-found-${choices.length}`;
      option.setAttribute("role", "option");
      option.append(Object.assign(document.createElement("span"), { textContent: label }));
      option.append(Object.assign(document.createElement("small"), { textContent: detail }));
      option.addEventListener("click", () => choose(does));
      choices.push({ label, option, does });
      group.append(option);
    }
    list.append(group);
  }
  if (!choices.length) list.append(Object.assign(document.createElement("p"), { textContent: "nothing of that name" }));
  mark(0);
}

function mark(at) {
  const field = toolbar.part(".k-palette input");
  choices.forEach(({ option }, index) => option.setAttribute("aria-selected", String(index === at)));
  mark.at = at;
  field.removeAttribute("aria-activedescendant");
  if (choices[at]) {
    field.setAttribute("aria-activedescendant", choices[at].option.id);
    choices[at].option.scrollIntoView({ block: "nearest" });
  }
}

function choose(does) {
  toolbar.part(".k-palette").close();
  does();
}

function listenToPalette(dialog) {
  const field = dialog.querySelector("input");
  field.addEventListener("input", () => ask(field.value.trim()));
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && choices.length) mark((mark.at + step + choices.length) % choices.length);
    if (event.key === "Enter") enter();
    if (step || event.key === "Enter") event.preventDefault();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

// Who types a name and Enter at once means what will be found, not what stood there before.
function enter() {
  if (toolbar.found?.text === askedLast) {
    if (choices[mark.at]) choose(choices[mark.at].does);
  } else {
    enter.waits = askedLast;
  }
}

function foundArrived() {
  if (!toolbar.part(".k-palette")?.open) return;
  // What the reader moved to stays marked, wherever the list has it now.
  const label = mark.at ? choices[mark.at]?.label : undefined;
  drawChoices();
  if (label !== undefined) mark(Math.max(choices.findIndex((choice) => choice.label === label), 0));
  if (enter.waits !== undefined && enter.waits === toolbar.found?.text) {
    enter.waits = undefined;
    enter();
  }
}
