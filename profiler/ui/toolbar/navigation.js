// Links between pages stay in the session: a plain link loads the document anew, which starts another one.

const GOES_ALONG = ["family", "workload", "gpu"];
const MENU_LINKS = '[data-testid="stTopNavLink"],[data-testid="stSidebarNavLink"]';
const XLINK = "http://www.w3.org/1999/xlink";
const REFRESH = "#refresh"; // a link that draws the present view again

// The address that a link to one of our pages has; null for any other link.
function pageAddress(link) {
  const href = link?.getAttribute("href") ?? link?.getAttributeNS(XLINK, "href"); // charts have links in SVG
  if (!href || link.hasAttribute("download")) return null;
  if (!["", "_self"].includes(link.getAttribute("target") ?? "") && !link.closest('[data-testid="stToast"]')) return null;
  if (href.endsWith(REFRESH)) return new URL(location.href);
  const address = new URL(href, location.href);
  const folder = location.pathname.replace(/[^/]*$/, "");
  const page = address.pathname.slice(folder.length);
  if (address.origin !== location.origin || !address.pathname.startsWith(folder)) return null;
  return toolbar.pages.has(page) ? address : null;
}

// Whether the address has another page of ours than the server has drawn last.
function isPageOnItsWay() {
  const page = location.pathname.replace(/^.*\//, "");
  return toolbar.pages.has(page) && page !== toolbar.page;
}

// Family, workload and GPU of this view: what the page says that it shows, else what its address asks for.
function viewContext() {
  const asked = new URLSearchParams(location.search);
  const shown = document.querySelector(".stMain .k-context")?.dataset ?? {};
  const pairs = GOES_ALONG.map((name) => [name, shown[name] ?? asked.get(name)]);
  return pairs.filter(([, value]) => value);
}

// A link of the menu says which page; the context of this view goes along.
function withContext(link, address) {
  if (!link.matches(MENU_LINKS)) return address;
  for (const [name, value] of viewContext()) address.searchParams.set(name, value);
  return address;
}

// Streamlit runs the page of the present address when the browser's history moves (1.67, App.onHistoryChange).
function goTo(address) {
  const leaves = address.pathname !== location.pathname;
  if (address.href !== location.href) history.pushState({}, "", address);
  window.dispatchEvent(new PopStateEvent("popstate"));
  if (leaves) document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
}

function followLinks(signal) {
  document.addEventListener(
    "click",
    (event) => {
      const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
      const link = event.target.closest?.("a");
      if (!isPlain || event.defaultPrevented || !link) return;
      const address = pageAddress(link);
      if (!address) return;
      event.preventDefault();
      event.stopPropagation();
      goTo(withContext(link, address));
    },
    { capture: true, signal },
  );
  // A form that leads to a page stays in the session too; a name that it sends several times is one list.
  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      const link = Object.assign(document.createElement("a"), { href: form.action, target: form.target });
      const address = form.method === "get" ? pageAddress(link) : null;
      if (!address) return;
      event.preventDefault();
      const sent = new FormData(form);
      for (const name of new Set(sent.keys())) address.searchParams.set(name, sent.getAll(name).join(","));
      goTo(address);
    },
    { capture: true, signal },
  );
  // What opens in a new tab carries the context too.
  const prepare = (event) => {
    const link = event.target.closest?.(MENU_LINKS);
    const address = link && pageAddress(link);
    if (address) link.href = withContext(link, address).href;
  };
  for (const kind of ["pointerdown", "focusin"]) document.addEventListener(kind, prepare, { capture: true, signal });
}

// The address with every choice in it: the page names it where the address in the bar leaves choices open.
function wholeAddress() {
  return document.querySelector(".stMain .k-address a")?.href ?? location.href;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text); // only where the page is served securely or from this machine
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
  return true;
}

async function copyLink(button) {
  confirmIn(button, (await copyText(wholeAddress())) ? "copied" : "not allowed here");
}

// Something was done: say so in the place of the button for two seconds.
function confirmIn(button, words) {
  say(words);
  if (!button?.isConnected) return;
  button.dataset.words ??= button.textContent;
  button.textContent = words;
  clearTimeout(button.confirmed);
  button.confirmed = setTimeout(() => (button.textContent = button.dataset.words), 2000);
}

function say(words) {
  const place = toolbar.part(".k-said");
  if (place) place.textContent = words;
}
