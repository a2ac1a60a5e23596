// Says once to the server that the page's first chart is drawn, or that somebody does something: the script of a
// page may wait for it with all that comes after the chart (first_chart.py).

const SAYS_FOR_MS = 30_000; // the server does not wait that long

function sayWhenDrawn(signal) {
  const waiting = new AbortController();
  const end = () => waiting.abort();
  const say = () => {
    const token = document.querySelector("[data-waits]")?.dataset.waits;
    if (!token) return;
    end();
    fetch(`./drawn/${token}`, { cache: "no-store", keepalive: true }).catch(() => {});
  };
  const drawn = new MutationObserver(() => document.querySelector(".js-plotly-plot .main-svg") && say());
  waiting.signal.addEventListener("abort", () => drawn.disconnect());
  signal.addEventListener("abort", end);
  drawn.observe(document.body, { childList: true, subtree: true });
  for (const done of ["pointerdown", "keydown"]) {
    document.addEventListener(done, say, { capture: true, passive: true, signal: waiting.signal });
  }
  setTimeout(end, SAYS_FOR_MS);
}
