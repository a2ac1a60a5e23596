// A chart that is wider than a phone scrolls in a box of its own, and shows its newest end first: the titles and
// the numbers at the left of its panels stay in sight. The style sheet moves what has the class by `--k-shift`.

const SCROLLING = '[class*="st-key-trends_"]:has(.js-plotly-plot)';
const PHONE = matchMedia("(max-width: 700px)");

function keepTitlesInSight(signal) {
  const scrolled = (event) => event.target.matches?.(SCROLLING) && shiftTitles(event.target);
  document.addEventListener("scroll", scrolled, { signal, passive: true, capture: true });
  let waiting = 0;
  const drawn = new MutationObserver(() => {
    if (!PHONE.matches || waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      document.querySelectorAll(SCROLLING).forEach(shiftTitles);
    });
  });
  drawn.observe(document.body, { childList: true, subtree: true });
  signal.addEventListener("abort", () => drawn.disconnect());
}

function shiftTitles(box) {
  const chart = box.querySelector(".js-plotly-plot");
  const hidden = box.getBoundingClientRect().left - chart.getBoundingClientRect().left;
  box.style.setProperty("--k-shift", `${Math.max(0, hidden)}px`);
  const titles = [...(chart.layout?.annotations ?? []).entries()].filter(
    ([, note]) => note.xref === "paper" && note.x === 0 && note.xanchor === "left",
  );
  const staying = titles.map(([at]) => chart.querySelector(`.annotation[data-index="${at}"]`));
  for (const part of [...staying, ...chart.querySelectorAll(".yaxislayer-above")]) part?.classList.add("k-stays");
}
