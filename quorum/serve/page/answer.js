/** An answer as the trace page shows it, with what one may do about it. */

import { download, get, hasKey, post } from "./api.js";
import { chart } from "./chart.js";
import { button, fill, find, h, marked } from "./dom.js";
import { keeping, query } from "./sql.js";
import { table, takeaway } from "./table.js";

/** A heading and sentences below it; nothing without sentences. */
function said(head, texts, look = "") {
  const all = texts.filter(Boolean);
  if (!all.length) return null;
  return [h("h4", { class: look || null }, head), h("ul", { class: `notes ${look}` }, all.map((text) => h("li", {}, marked(text))))];
}

/** A heading with short texts on its line. */
function inline(head, texts) {
  const all = texts.filter(Boolean);
  return all.length > 0 && h("p", {}, h("b", {}, `${head}: `), all.join(" · "));
}

/** The rows of an answer or a reading, with the buttons that take them away. */
function rowsOf(run, result, note, caption, reading = "") {
  const whole = () => get(`/v1/questions/${run}/rows`, { format: "json", reading });
  const load = result.row_count > result.rows.length ? whole : null;
  const place = table(result, caption, load, note.replace(/^the first [\d,]+ of /, ""));
  return [place, h("div", { class: "row under" }, place.said, h("span", { class: "row" }, takeaway(run, result, place.arranged, reading)))];
}

/** The card of another reading that was run already, in the place of the answer's; no model is asked. */
function chosen({ id, answer, database }, each, n, back, anew) {
  const raw = answer.readings[n - 1];
  const keep = keeping("Keep it", (note) => post(`/v1/questions/${id}/correct`, { sql: raw.sql, note }));
  return h(
    "section",
    { class: "card answer" },
    h("div", { class: "badges" }, h("h3", { class: "badge warn", tabindex: -1 }, "Answer as you meant it"), h("span", { class: "badge soft" }, "not rated")),
    inline("You chose", [each.says]),
    h("p", { class: "soft" }, "Its rows were here already: no model was asked. A follow-up still goes on from the first answer, unless you ask for this one anew."),
    h("div", { class: "row" }, button("Ask it anew", anew), button("Back to the first answer", back)),
    rowsOf(id, { ...raw, shown: each.rows }, each.rows_note, "Rows of the answer", n),
    [h("h4", {}, "SQL"), query(each.sql, database).place],
    h("div", { class: "verdict own-sql" }, keep),
  );
}

/** The other readings: what each shows, its query, and the button that takes it for the answer, or asks for it. */
function readings(asked, ask) {
  const { id, answer, database } = asked;
  const { shown } = answer;
  const meant = (says) => ask(`${answer.question.trim()}\n\nTo be precise: ${says}`);
  const choose = (says, take = () => meant(says)) => button("I meant this", take, { "aria-label": `I meant this: ${says}` });
  const takes = (each, n) => (pressed) => {
    const card = pressed.closest(".card");
    const other = chosen(asked, each, n, () => other.replaceWith(card), () => meant(each.says));
    card.replaceWith(other);
    find("h3", other).focus();
  };
  const numbers = answer.readings.flatMap((each, n) => (each.sql ? [n + 1] : []));
  return [
    shown.readings.map((each, n) => {
      const raw = answer.readings[numbers[n] - 1];
      return h(
        "section",
        { class: "reading" },
        h("div", { class: "row" }, h("h4", {}, `If you meant: ${each.says}`), choose(each.says, takes(each, numbers[n]))),
        rowsOf(id, { ...raw, shown: each.rows }, each.rows_note, `If you meant: ${each.says}`, numbers[n]),
        h("details", {}, h("summary", {}, "Its query"), query(each.sql, database).place),
      );
    }),
    shown.open_readings.length > 0 && h("h4", {}, "The question could also mean"),
    shown.open_readings.length > 0 &&
      h("ul", { class: "open" }, shown.open_readings.map((says) => h("li", { class: "row" }, h("span", {}, says), choose(says)))),
  ];
}

/** "Right?" and "Wrong?": what a person knows, for the questions to come; of a verified answer only the latter. */
function verdict(id, edit, verified) {
  const place = h("div", { class: "verdict" });
  const right = () => {
    fill(place, keeping("Keep it", (note) => post(`/v1/questions/${id}/keep`, { note })));
    place.querySelector("input").focus();
  };
  fill(
    place,
    h("div", { class: verified ? "row own-sql" : "row" }, h("span", { class: "soft" }, verified ? "Is it right no more?" : "Is this right?"), !verified && h("button", { type: "button", onclick: right }, "Right"), h("button", { type: "button", class: "own-sql", onclick: () => edit(true) }, "Wrong")),
  );
  return place;
}

/** The link to the trace page; where a key is needed, which a link cannot send, it is saved as a file. */
function traceLink(id) {
  const path = `/v1/questions/${id}/trace`;
  if (!hasKey()) return h("a", { href: path, target: "_blank", rel: "noopener" }, "Every step (trace)");
  return h("button", { type: "button", class: "quiet", onclick: () => download(path, `${id}.html`) }, "Every step (trace)");
}

/** The card of an answered question. `ask(text)` asks another one. */
export function answerCard(asked, ask) {
  const { id, answer, database } = asked;
  const { shown } = answer;
  const foot = h("p", { class: "foot soft" }, [shown.spent, shown.spent && " · "], traceLink(id));
  if (answer.words) return h("section", { class: "card answer" }, h("p", { class: "says" }, answer.words), foot);
  const has = answer.columns.length > 0;
  const written = answer.sql && !answer.of_run ? query(shown.sql, database, id) : null;
  return h(
    "section",
    { class: "card answer" },
    h(
      "div",
      { class: "badges" },
      h("h3", { class: `badge ${shown.tone}`, tabindex: -1 }, shown.status),
      answer.demonstration && h("span", { class: "badge violet" }, "demonstration: rules, no language model"),
    ),
    has && h("p", {}, h("b", { class: shown.trust_tone }, shown.trust), answer.grounds && `: ${answer.grounds}`),
    [answer.error, answer.hint, answer.missing, answer.summary].map((text) => text && h("p", { class: "says" }, text)),
    shown.readings.length > 0 && inline("Read as", [answer.reading]),
    inline("You chose", [answer.meant]),
    has && rowsOf(id, { ...answer, shown: shown.rows }, shown.rows_note, "Rows of the answer"),
    has && chart(id, answer.chart),
    !has && answer.status !== "unanswerable" && answer.status !== "failed" && [
      h("p", {}, shown.failures.length ? "No candidate has a result." : "No candidate was begun."),
      h("ul", { class: "notes" }, shown.failures.map(([names, error]) => h("li", {}, h("b", {}, names), `: ${error}`))),
    ],
    said("The data shows", answer.doubts, "warn"),
    said(shown.notices.length > 1 ? "Warnings" : "Warning", shown.notices, "warn"),
    said("It assumes", answer.assumptions),
    written && [h("h4", {}, "SQL"), written.place],
    readings(asked, ask),
    said("The candidates disagree", answer.disagreement, "warn"),
    inline("Shown as an example, for it resembles the question", answer.verified),
    inline("Read in each database", answer.parts),
    inline("Documents shown to the model", answer.sources),
    inline("Kept for later questions", [answer.convention]),
    has && written && verdict(id, written.edit, shown.verified),
    foot,
  );
}
