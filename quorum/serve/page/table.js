/** Tables of results: sorted by any column, copied, saved. */

import { at, download, get, save } from "./api.js";
import { announce, button, count, fill, find, h } from "./dom.js";

const PAGE = 100; // rows shown at a time
const NUMBER = /^(u?int|float|double|half|decimal)/;

/** Order two values of a column: numbers by size, text as people sort it, NULL last. */
function order(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function cells(row, texts, numeric) {
  return texts.map((text, n) => {
    const look = [numeric[n] && "num", row[n] === null && "null"].filter(Boolean).join(" ");
    return h("td", { class: look || null }, h("div", {}, text));
  });
}

/**
 * A table of rows.
 *
 * `result` has `columns`, `types`, `rows` (values) and `shown` (the same as text, as all of Quorum shows them).
 * With `load`, the first sort fetches all rows that were kept, so that the order is that of the whole result.
 * What is made holds `said`, the `note` behind how many rows are shown, and `arranged`, which sorts rows alike.
 */
export function table(result, caption, load = null, note = "") {
  let { rows, shown } = result;
  let limit = PAGE;
  let by = -1;
  let down = false;
  const numeric = result.columns.map((_, n) =>
    result.types?.[n] ? NUMBER.test(result.types[n]) : rows.every((row) => row[n] === null || typeof row[n] === "number"),
  );
  const body = h("tbody");
  const said = h("span", { class: "soft" });
  const more = button("Show more rows", async () => {
    if (load) await whole();
    limit += PAGE;
    draw();
  });

  async function whole() {
    ({ rows, shown } = await load());
    load = null;
  }

  /** Sort as the table is. */
  function arranged(all, row = (each) => each) {
    const value = (each) => row(each)[by];
    const sign = (a, b) => (value(a) === null || value(b) === null || !down ? 1 : -1);
    return by < 0 ? all : [...all].sort((a, b) => sign(a, b) * order(value(a), value(b)));
  }

  function draw() {
    const lines = arranged(rows.map((_, n) => n), (n) => rows[n]).slice(0, limit).map((n) => h("tr", {}, cells(rows[n], shown[n], numeric)));
    fill(body, lines.length ? lines : h("tr", {}, h("td", { class: "null", colspan: result.columns.length || 1 }, "no rows")));
    more.hidden = !load && rows.length <= limit;
    said.textContent = lines.length < result.row_count ? `the first ${lines.length.toLocaleString("en-US")} of ${note}` : note;
    heads.forEach((head, n) => {
      head.setAttribute("aria-sort", n !== by ? "none" : down ? "descending" : "ascending");
    });
  }

  async function sort(n) {
    if (load) await whole();
    down = by === n ? !down : numeric[n]; // the largest numbers first
    by = n;
    draw();
    announce(`Sorted by ${result.columns[n]}, ${down ? "descending" : "ascending"}`);
  }

  const heads = result.columns.map((name, n) =>
    h("th", { scope: "col", class: numeric[n] ? "num" : null }, button(h("span", {}, name), () => sort(n), { class: "sort", title: `Sort by ${name}` })),
  );
  draw();
  const scroll = { class: "scroll", tabindex: 0, role: "region", "aria-label": caption };
  const place = h("div", { class: "result" }, h("div", scroll, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)), more);
  return Object.assign(place, { arranged, said });
}

/** Rows as lines of text: pasted into a spreadsheet, or as CSV. */
function written({ columns, rows }, between, cell) {
  const plain = (value) => (value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return [columns, ...rows].map((row) => row.map((value) => cell(plain(value))).join(between)).join("\n");
}

const pasted = (all) => written(all, "\t", (text) => text.replace(/[\t\r\n]+/g, " "));
const csv = (all) => `${written(all, ",", (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text))}\n`;

async function copy(place, text) {
  if (!navigator.clipboard) throw Error("This browser copies only from https, or from this machine.");
  await navigator.clipboard.writeText(text);
  const before = place.textContent;
  place.textContent = "Copied";
  announce("Copied");
  setTimeout(() => (place.textContent = before), 1500);
}

export const copyButton = (label, text) => button(label, async (place) => copy(place, await text()), { class: "quiet" });

/** The buttons that take rows away: to the clipboard, in the order in which they are shown, as CSV, as Parquet. */
export function takeaway(run, result, arranged, reading = "") {
  const path = (format) => at(`/v1/questions/${run}/rows`, { format, reading });
  const saved = (format, name) =>
    button(name, () => download(path(format), `${run}${reading && `-reading-${reading}`}.${format}`), { class: "quiet", title: `Download all ${count(result.row_count, "row")} as ${name}` });
  const all = async () => {
    const { columns, rows } = await get(path("json"));
    return pasted({ columns, rows: arranged(rows) });
  };
  return [copyButton("Copy", all), saved("csv", "CSV"), saved("parquet", "Parquet")];
}

/** The same of rows that are all here, and of no run. */
export function takeawayOf(result, arranged) {
  const all = () => ({ columns: result.columns, rows: arranged(result.rows) });
  const file = () => save(new Blob([csv(all())], { type: "text/csv" }), "query.csv");
  return [copyButton("Copy", async () => pasted(all())), button("CSV", file, { class: "quiet", title: `Download ${count(result.row_count, "row")} as CSV` })];
}
