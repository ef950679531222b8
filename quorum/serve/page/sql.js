/** A query: read, copied, edited, run within the guard's limits, kept as the right one. */

import { post } from "./api.js";
import { draw } from "./chart.js";
import { announce, button, count, fault, fill, find, h, sqlText } from "./dom.js";
import { copyButton, table, takeawayOf } from "./table.js";

const MOST = 10_000; // rows that the server gives

/** What was kept, in words. */
export function taught({ replaced, warning, dates }) {
  announce("Kept");
  return h(
    "div",
    { class: "kept" },
    h("p", { class: "good" }, "✓ Kept: the next question of these words gets this query, and no model is asked."),
    replaced && h("p", {}, `It takes the place of another query, ${replaced}.`),
    dates.length > 0 && h("p", { class: "soft" }, `The query holds fixed dates (${dates.join(", ")}): asked again later, it answers for them.`),
    warning && h("p", { class: "warn" }, `Warning: ${warning}`),
  );
}

/** A field for a note of why an answer is right, with the button that keeps it. */
export function keeping(label, send) {
  const note = h("input", { type: "text", maxlength: 2000, placeholder: "Why, for later questions (may be empty)", "aria-label": "Note" });
  const form = h("div", { class: "row keeping" }, note);
  const keep = async () => {
    const kept = taught(await send(note.value));
    form.closest(".card")?.querySelector(".verdict > .row:not(.keeping)")?.remove();
    form.replaceWith(kept);
  };
  form.append(button(label, keep, { class: "main" }));
  return form;
}

/** An editor. With `run`, the query can be kept as the right one for that question, once it has run. */
export function editor(sql, database, { run = "", correcting = false, onClose = null } = {}) {
  const text = h("textarea", { class: "code", spellcheck: "false", rows: 3, "aria-label": "SQL", value: sql });
  const out = h("div", { class: "out" });
  const go = button("Run", execute, { class: "main", title: "Ctrl+Enter" });

  async function execute() {
    fill(out, h("p", { class: "soft" }, "Running…"));
    try {
      const found = await post("/v1/sql", { sql: text.value, database, rows: MOST, chart: true });
      const plot = h("div", { class: "plot" });
      const rows = `${count(found.row_count, "row")} in ${found.seconds.toFixed(2)} s`;
      const cut = found.truncated && "; cut off at the limit, there are more in the database: narrow the query to see them";
      const place = table(found, "Result of your query", null, rows + cut);
      announce(rows + cut);
      fill(
        out,
        place,
        h("div", { class: "row under" }, place.said, h("span", { class: "row" }, takeawayOf(found, place.arranged))),
        plot,
        run && correcting && keeping("This is right: keep it", (note) => post(`/v1/questions/${run}/correct`, { sql: text.value, note })),
      );
      if (found.chart.spec) draw(plot, found.chart).catch((error) => fill(plot, fault(error)));
    } catch (error) {
      fill(out, fault(error));
    }
  }

  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go.click();
  });
  const close = onClose && h("button", { type: "button", class: "quiet", onclick: onClose }, "Close");
  const hint = h("span", { class: "soft" }, correcting ? "Run the right query, then keep it." : "Only reads run, within the limits of questions.");
  return h("div", { class: "editor" }, text, h("div", { class: "row" }, go, close, hint), out);
}

/** A query as text, which an editor can take the place of: `edit(correcting)` opens it. */
export function query(sql, database, run = "") {
  const shown = h("pre", { tabindex: 0, role: "region", "aria-label": "SQL" }, sqlText(sql));
  const place = h("div", { class: "query" });
  const edit = (correcting = false) => {
    fill(place, editor(sql, database, { run, correcting, onClose: read }));
    find("textarea", place).focus();
  };
  function read() {
    const change = h("button", { type: "button", class: "quiet own-sql", onclick: () => edit(false) }, "Edit and run");
    fill(place, shown, h("div", { class: "row" }, change, copyButton("Copy", async () => sql)));
  }
  read();
  return { place, edit };
}
