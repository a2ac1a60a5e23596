// Long parts of a page that are read rarely are folded on a phone, until somebody opens them: no page is longer
// than four screens. They come open, so that they can be read where this script is not.

function foldOnPhone(signal) {
  const fold = () => {
    if (!PHONE.matches) return;
    for (const part of document.querySelectorAll(".k-long[open]:not([data-seen])")) {
      part.dataset.seen = "";
      part.open = false;
    }
  };
  const drawn = new MutationObserver(fold);
  drawn.observe(document.body, { childList: true, subtree: true });
  signal.addEventListener("abort", () => drawn.disconnect());
  fold();
}
