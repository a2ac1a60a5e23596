// A chart whose layout names two parameters (`meta.zoom`) puts the part of its x axis that was dragged over into
// the address; a double click takes it out again. Streamlit hands on what is selected, but not what is zoomed.

const ZOOMED_DIGITS = 16; // of a moment, to the minute: 2026-11-07 02:00

function rememberZooms(signal) {
  const over = (event) => {
    const chart = event.target.closest?.(".js-plotly-plot");
    if (!chart?.layout?.meta?.zoom || chart.dataset.zooms) return;
    chart.dataset.zooms = "yes";
    chart.on("plotly_relayout", (change) => rememberZoom(chart, change));
  };
  document.addEventListener("pointerover", over, { signal, passive: true });
}

function rememberZoom(chart, change) {
  const address = new URL(location.href);
  const ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const isWhole = change["xaxis.autorange"] === true;
  if (!isWhole && ends.includes(undefined)) return;
  (chart.layout.meta?.zoom ?? []).forEach((name, at) => {
    if (isWhole) address.searchParams.delete(name);
    else address.searchParams.set(name, String(ends[at]).replace(" ", "T").slice(0, ZOOMED_DIGITS));
  });
  goTo(address);
}
