// PNG, SVG and CSV of every chart, CSV of every table: they are found in the page, whoever drew them.

const TABLES = ".k-box:has(table), .code";
const CHARTS = ".js-plotly-plot";
const PAINTED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity",
  "font-family", "font-size", "font-weight", "font-variant-numeric", "text-anchor", "visibility", "display"];
const NO_NUMBER = "no number"; // `meta` of a trace whose points lie where there is room, not at a number
const PNG_SCALE = 2; // pixels of the picture for each of the screen's
let exported; // what the bar stands beside

// Everything that can be saved, from top to bottom: its element, its name, and by form what saves it.
function exportable() {
  const places = [...main().querySelectorAll(`${CHARTS},${TABLES}`)].filter(isSeen);
  return places.filter((place) => !place.parentElement.closest(TABLES)).map(describeExport);
}

function describeExport(place) {
  const name = nameOf(place);
  const save = (content, form) => download(content, `${slug(name)}.${form.toLowerCase()}`);
  const forms = place.matches(CHARTS)
    ? {
        PNG: async () => save(await picture(place), "PNG"),
        SVG: () => save(new Blob([drawing(place)], { type: "image/svg+xml" }), "SVG"),
        CSV: () => save(csv(chartRows(place)), "CSV"),
      }
    : { CSV: () => save(csv(tableRows(place)), "CSV") };
  return { place, name, forms };
}

// What a chart or table is called: its own label, else the heading above it.
function nameOf(place) {
  const own = place.querySelector("table[aria-label]") ?? place.closest("[aria-label]");
  if (own && main().contains(own) && own !== main()) return own.getAttribute("aria-label");
  const heads = [...main().querySelectorAll('[role="heading"],h1,h2,h3')];
  const above = heads.filter((head) => head.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING);
  return above.at(-1)?.textContent.trim() ?? document.title;
}

const slug = (name) => name.normalize("NFKD").replace(/[^\w.]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "export";

function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say(`saved ${name}`);
}

function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" });
}

const plain = (text) => text.replace(/[\u2009\u202f\u00a0\s]+/g, " ").trim();

// A cell's number in full where it carries one, else what is read there.
function cellValue(cell) {
  const numbers = cell.querySelectorAll("[data-value]");
  if (cell.dataset.value !== undefined) return [cell.dataset.value, cell.dataset.unit ?? ""];
  const isWhole = numbers.length === 1 && plain(numbers[0].textContent) === plain(cell.textContent);
  if (isWhole) return [numbers[0].dataset.value, numbers[0].dataset.unit ?? ""];
  const state = cell.querySelector(".lanes,svg,.bar,.track") && !cell.innerText.trim();
  return [state ? "" : plain(cell.innerText || cell.textContent), ""];
}

// Rows of cells; a column whose numbers have units is followed by one that names them.
function tableRows(place) {
  const rows = place.matches(".code")
    ? [...place.children].map((row) => [...row.children])
    : [...place.querySelectorAll("tr:not(.phone)")].map((row) => [...row.querySelectorAll(":scope > :not(.phone)")]);
  const read = rows.map((cells) => cells.flatMap((cell) => {
    const padding = Array.from({ length: (cell.colSpan || 1) - 1 }, () => ["", ""]);
    return [cellValue(cell), ...padding];
  }));
  const width = Math.max(0, ...read.map((row) => row.length));
  const hasUnit = Array.from({ length: width }, (_, at) => read.some((row) => row[at]?.[1]));
  return read.map((row, index) => hasUnit.flatMap((named, at) => {
    const [value, unit] = row[at] ?? ["", ""];
    const head = index === 0 && !unit ? (value ? `${value} unit` : "") : unit;
    return named ? [value, head] : [value];
  }));
}

const list = (values) => (values && typeof values === "object" && "length" in values ? Array.from(values) : []);
const unmarked = (text) =>
  plain(new DOMParser().parseFromString(String(text ?? "").replace(/<br *\/?>/g, " "), "text/html").body.textContent);

// The data of a chart, a row for each point of each line.
function chartRows(chart) {
  const rows = [["series", "x", "y", "value", "base", "text", "error", "error_minus"]];
  for (const trace of (chart._fullData ?? []).filter((one) => one.visible !== false)) {
    const own = unmarked(chart.data?.[trace.index]?.name); // Plotly calls the others "trace 18"
    if (!own && trace.hoverinfo === "skip") continue; // the outline of a band, a level
    const [x, y, z] = [positions(chart, trace, "x"), positions(chart, trace, "y"), list(trace.z)];
    if (z.length) {
      z.forEach((values, row) => list(values).forEach((value, column) =>
        rows.push([own, x[column] ?? column, y[row] ?? row, value, "", "", "", ""])));
      continue;
    }
    const at = (values, index) => (Array.isArray(values) || ArrayBuffer.isView(values) ? values[index] : "");
    const errors = trace.error_y?.visible ? trace.error_y : trace.error_x?.visible ? trace.error_x : {};
    for (let index = 0; index < Math.max(x.length, y.length); index++) {
      if (x[index] === null && y[index] === null) continue; // where a line is broken
      const [name, said] = described(trace, own, at(trace.hovertext, index));
      const number = trace.meta === NO_NUMBER ? "" : y.length ? y[index] : index;
      rows.push([name, x.length ? x[index] : index, number, "", at(trace.base, index),
        unmarked(at(trace.text, index)) || said, at(errors.array, index), at(errors.arrayminus, index)]);
    }
  }
  const used = rows[0].map((_, column) => column < 3 || rows.slice(1).some((row) => ![undefined, null, ""].includes(row[column])));
  return rows.map((row) => row.filter((_, column) => used[column]));
}

// Where the points of a trace lie along an axis; moments, which Plotly holds as milliseconds or as texts in UTC, as
// ISO 8601.
function positions(chart, trace, axis) {
  const values = list(trace[axis]);
  const isTime = chart._fullLayout?.[(trace[`${axis}axis`] ?? axis).replace(axis, `${axis}axis`)]?.type === "date";
  return isTime ? values.map(isoMoment) : values;
}

function isoMoment(value) {
  const moment = new Date(typeof value === "string" ? `${value.replace(" ", "T")}Z` : value ?? NaN);
  return isNaN(moment) ? value : moment.toISOString().replace(".000Z", "Z");
}

// The series of a point and what is said of it under the pointer, which may begin with a name in bold. A trace
// without a name is called by that, else by the words before its number.
function described(trace, own, hovertext) {
  const template = (trace.hovertemplate ?? "").split("<extra>")[0];
  const isFixed = template !== "" && !template.includes("%{");
  const [, bold, rest] = (hovertext || template).match(/^(?:<b>(.*?)<\/b>)?(.*)$/s);
  const said = hovertext || isFixed ? unmarked(rest) : "";
  if (own) return [own, unmarked(bold) === own ? said : unmarked(`${bold ?? ""} ${said}`)];
  if (bold) return [unmarked(bold), said];
  return [hovertext || isFixed ? "" : unmarked(template.split("%{")[0]).replace(/:$/, ""), said];
}

// The drawing as the screen shows it: the colours of the present theme become part of it.
function drawing(chart, fonts = "") {
  const { width, height } = chart.getBoundingClientRect();
  const layers = [...chart.querySelectorAll(".main-svg")].map((layer) => {
    const copy = layer.cloneNode(true);
    const originals = [layer, ...layer.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((element, index) => paint(originals[index], element));
    return new XMLSerializer().serializeToString(copy);
  });
  const page = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<style>${fonts}</style><rect width="100%" height="100%" fill="${page}"/>${layers.join("")}</svg>`;
}

function paint(original, copy) {
  const style = getComputedStyle(original);
  for (const property of PAINTED) {
    const value = style.getPropertyValue(property);
    if (value && !value.startsWith("url(")) copy.style.setProperty(property, value);
  }
}

// A picture cannot use the fonts of the page: the text face goes into it.
async function textFace() {
  const faces = [...document.styleSheets].flatMap((sheet) => {
    try {
      return [...sheet.cssRules].filter((rule) => rule instanceof CSSFontFaceRule);
    } catch {
      return []; // of another origin
    }
  });
  const upright = faces.find((face) => /Source Sans/.test(face.cssText) && !/italic/i.test(face.cssText));
  const address = upright?.cssText.match(/url\("?([^")]+)"?\)/)?.[1];
  if (!address) return "";
  const bytes = await (await fetch(new URL(address, upright.parentStyleSheet?.href ?? document.baseURI))).blob();
  const data = await new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(bytes);
  });
  return upright.cssText.replace(address, data);
}

async function picture(chart) {
  const fonts = await textFace().catch(() => "");
  const address = URL.createObjectURL(new Blob([drawing(chart, fonts)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * PNG_SCALE);
  canvas.height = Math.round(image.height * PNG_SCALE);
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function showExports(item) {
  const bar = toolbar.part(".k-export");
  if (exported === item.place && !bar.hidden) return;
  exported = item.place;
  bar.replaceChildren();
  for (const [form, save] of Object.entries(item.forms)) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: form });
    button.title = `${form} of ${item.name}`;
    button.addEventListener("click", async () => {
      await save();
      confirmIn(button, "saved");
    });
    bar.append(button);
  }
  bar.hidden = false;
  placeExports();
}

function placeExports() {
  const bar = toolbar.part(".k-export");
  if (bar.hidden) return;
  if (!exported?.isConnected) return hideExports();
  const room = exported.getBoundingClientRect();
  const top = Math.max(room.top - bar.offsetHeight, document.querySelector(".stAppHeader")?.offsetHeight ?? 0);
  const isGone = room.bottom < top || room.top > innerHeight;
  bar.style.visibility = isGone ? "hidden" : "";
  bar.style.top = `${top}px`;
  bar.style.left = `${Math.min(room.right, innerWidth - 8) - bar.offsetWidth}px`;
}

function hideExports() {
  const bar = toolbar.part(".k-export");
  if (bar) bar.hidden = true;
  exported = undefined;
}

// `e`: the bar of what has the focus or is seen first; once more: of what follows.
function exportNext() {
  const all = exportable();
  if (!all.length) return say("nothing to export on this page");
  const bar = toolbar.part(".k-export");
  const at = all.findIndex(({ place }) => place === exported);
  const focused = all.findIndex(({ place }) => place.contains(document.activeElement));
  const inView = all.findIndex(({ place }) => place.getBoundingClientRect().bottom > 80);
  const next = !bar.hidden && bar.contains(document.activeElement) ? (at + 1) % all.length : Math.max(focused, inView, 0);
  const item = all[next];
  item.place.scrollIntoView({ block: "nearest" });
  showExports(item);
  bar.querySelector("button").focus();
}

function offerExports(signal) {
  let leaving;
  const over = (event) => {
    const bar = toolbar.part(".k-export");
    if (!bar || !(event.target instanceof Element)) return;
    const place = event.target.closest(`${CHARTS},${TABLES}`);
    if (place && main().contains(place)) {
      clearTimeout(leaving);
      showExports(describeExport(place));
    } else if (bar.contains(event.target)) {
      clearTimeout(leaving);
    } else if (!bar.hidden && !bar.contains(document.activeElement)) {
      clearTimeout(leaving);
      leaving = setTimeout(hideExports, 400);
    }
  };
  document.addEventListener("pointerover", over, { signal, passive: true });
  document.addEventListener("scroll", placeExports, { signal, capture: true, passive: true });
  addEventListener("resize", placeExports, { signal });
}
