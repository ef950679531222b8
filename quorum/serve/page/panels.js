/** What was asked before, and what the database holds. */

import { get } from "./api.js";
import { button, count, fault, fill, find, h } from "./dom.js";

const LIMIT = 30;
const MOST = 200; // that the server lists
const STATUS = { answered: "answered", no_answer: "no answer", unanswerable: "the data cannot answer it", stopped: "stopped by a limit" };

/** Search while someone types, and show what was found last. */
function searched(section, look) {
  const input = find("input", section);
  const place = find(".found", section);
  let number = 0;
  let timer;
  async function now() {
    const mine = ++number;
    try {
      const found = await look(input.value.trim());
      if (mine === number) fill(place, found);
    } catch (error) {
      if (mine === number) fill(place, fault(error));
    }
  }
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(now, 200);
  });
  return now;
}

function when(started) {
  const date = new Date(/[Z+]/.test(started) ? started : `${started}Z`);
  return Number.isNaN(date.getTime()) ? started : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** The history; returns what reads it again. */
export function history(database) {
  const line = (run) =>
    h(
      "li",
      {},
      h("a", { href: `#run=${run.id}` }, run.question),
      h("span", { class: "soft" }, [STATUS[run.status] ?? run.status, when(run.started), run.demonstration && "demonstration"].filter(Boolean).join(" · ")),
    );
  return searched(find("#history"), async (words) => {
    const page = async (limit) => (await get("/v1/history", { words, database: database(), limit })).questions;
    const questions = await page(LIMIT);
    if (!questions.length) return h("p", { class: "soft" }, words ? "No question has these words." : "Nothing was asked yet.");
    const list = h("ul", { class: "runs" }, questions.map(line));
    const earlier = button("Earlier ones", async () => {
      fill(list, (await page(MOST)).map(line));
      earlier.replaceWith(list.children.length < MOST ? "" : "Search for those before.");
    }, { class: "quiet", hidden: questions.length < LIMIT });
    return [list, earlier];
  });
}

function column(each) {
  return h(
    "li",
    {},
    h("code", {}, each.name),
    h("span", { class: "soft" }, [each.type.toLowerCase(), each.key && "key", each.refers_to && `→ ${each.refers_to}`].filter(Boolean).join(" · ")),
    each.description && h("p", {}, each.description),
    each.odd && h("p", { class: "warn" }, h("b", {}, "odd: "), each.odd),
    each.samples.length > 0 && h("p", { class: "soft samples" }, each.samples.join(", ")),
  );
}

/** The schema; returns what reads it again. */
export function schema(database) {
  return searched(find("#schema"), async (words) => {
    const found = await get("/v1/schema", { database: database(), words });
    if (!found.tables.length) return h("p", { class: "soft" }, words ? "No table fits these words." : "There are no tables.");
    const tables = found.tables.map((each) =>
      h(
        "details",
        { open: words !== "" && found.tables.length < 4 },
        h("summary", {}, h("b", {}, each.name), h("span", { class: "soft" }, each.rows === null ? each.kind : count(each.rows, "row"))),
        each.description && h("p", {}, each.description),
        h("ul", { class: "columns" }, each.columns.map(column)),
      ),
    );
    const rest = found.total > tables.length && h("p", { class: "soft" }, `${tables.length} of ${count(found.total, "table")}: search for others.`);
    return [tables, rest, found.notes.length > 0 && h("ul", { class: "notes soft" }, found.notes.map((note) => h("li", {}, note)))];
  });
}
