// A chart that is wider than a phone scrolls in a box of its own, and shows its newest end first: the titles and
// the numbers at the left of its panels stay in sight. The style sheet moves what has the class by `--k-shift`, and
// hides callouts, which would begin outside the box; the table of steps says the same.

const SCROLLING = '[class*="st-key-trends_"]:has(.js-plotly-plot)';
const CALLOUT = "callout"; // as panel_overlays.py names the labels of change points
const PHONE = matchMedia("(max-width: 700px)");

function keepTitlesInSight(signal) {
  const scrolled = (event) => event.target.matches?.(SCROLLING) && keepInSight(event.target);
  document.addEventListener("scroll", scrolled, { signal, passive: true, capture: true });
  let waiting = 0;
  const drawn = new MutationObserver(() => {
    if (!PHONE.matches || waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      document.querySelectorAll(SCROLLING).forEach(keepInSight);
    });
  });
  drawn.observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", () => document.querySelectorAll(SCROLLING).forEach(keepInSight), { signal });
  signal.addEventListener("abort", () => drawn.disconnect());
}

function keepInSight(box) {
  const chart = box.querySelector(".js-plotly-plot");
  const hidden = box.getBoundingClientRect().left - chart.getBoundingClientRect().left;
  for (const [at, note] of (chart.layout?.annotations ?? []).entries()) {
    const part = chart.querySelector(`.annotation[data-index="${at}"]`);
    const isTitle = note.xref === "paper" && note.x === 0 && note.xanchor === "left";
    part?.classList.toggle("k-callout", note.name === CALLOUT);
    if (!part || !isTitle) continue;
    shorten(part.querySelector("text"), box.clientWidth);
    stay(part, hidden);
  }
  for (const numbers of chart.querySelectorAll(".yaxislayer-above")) stay(numbers, hidden);
}

// At the left edge of the box, however far what is drawn is scrolled.
function stay(part, hidden) {
  part.classList.add("k-stays");
  part.style.setProperty("--k-shift", `${hidden - part.getBBox().x}px`);
}

// A title that is wider than the box ends with the last word that fits, and an ellipsis. Plotly draws it whole anew.
function shorten(title, room) {
  const caption = [...title.querySelectorAll("tspan")].at(-1);
  if (!caption || title.dataset.room === String(room)) return;
  title.dataset.room = room;
  title.setAttribute("text-anchor", "start"); // Plotly sets it about its middle
  title.setAttribute("x", 1);
  title.dataset.caption ??= caption.textContent;
  caption.textContent = title.dataset.caption;
  const words = title.dataset.caption.split(" ");
  while (words.length > 1 && title.getComputedTextLength() > room) {
    words.pop();
    caption.textContent = `${words.join(" ").replace(/[;,:]$/, "")} …`;
  }
}
