// Boxes in rows: Shift and a click tick every row from the one clicked before, as lists of files do.

const TICKS = '.k-ticks input[type="checkbox"]';
let tickedLast;

function tickRanges(signal) {
  const clicked = (event) => {
    const box = event.target.closest?.(TICKS);
    if (!box) return;
    if (event.shiftKey) tickBetween(tickedLast, box);
    tickedLast = box;
  };
  document.addEventListener("click", clicked, { signal });
}

function tickBetween(from, to) {
  const boxes = [...to.form.querySelectorAll(TICKS)].filter(isSeen);
  const [start, end] = [boxes.indexOf(from), boxes.indexOf(to)].sort((a, b) => a - b);
  if (start < 0) return;
  for (const box of boxes.slice(start, end + 1)) box.checked = to.checked;
}

// `x` ticks the row that has the focus; `X` every row from the one ticked before as well.
function tickRow(isRange = false) {
  const box = rowOfFocus()?.querySelector('input[type="checkbox"],[data-key="x"]');
  box?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: isRange }));
}
