/** A question under way: its steps as they happen, what it asks back, its answer. */

import { answerCard } from "./answer.js";
import { events, get, post } from "./api.js";
import { announce, button, count, fault, fill, find, h, marked, sqlText } from "./dom.js";
import { table } from "./table.js";

const TONES = { good: "good", bad: "bad", warn: "warn", faint: "soft" };
const SIGNS = { good: "✓", bad: "✗", warn: "!" }; // not by colour alone

function stepLine({ agent, text, tone, t, candidate }) {
  const who = [agent, candidate].filter(Boolean).join(" ");
  return h(
    "li",
    {},
    h("span", { class: "t soft" }, `${Number(t ?? 0).toFixed(2)}`),
    h("b", {}, who),
    h("span", { class: TONES[tone] ?? null }, SIGNS[tone] && h("span", { "aria-hidden": "true" }, `${SIGNS[tone]} `), text),
  );
}

/** The answers to choose from. */
function clarification(waiting, reply) {
  const own = h("input", { type: "text", maxlength: 500, placeholder: "Or say it in your own words", "aria-label": "In your own words" });
  const send = button("Send", () => own.value.trim() && reply(own.value), {});
  own.addEventListener("keydown", (event) => event.key === "Enter" && send.click());
  return [
    h("h3", { tabindex: -1 }, "Which answer is meant?"),
    h("p", { class: "soft" }, "The question can be read in several ways."),
    h(
      "div",
      {},
      waiting.choices.map((each) =>
        h(
          "section",
          { class: "reading" },
          h("div", { class: "row" }, h("h4", {}, `${each.label}: ${each.says}`), button("I mean this", () => reply(each.label), { "aria-label": `I mean ${each.label}: ${each.says}` })),
          table(each, `Rows of ${each.label}`),
          h("p", { class: "soft" }, count(each.row_count, "row")),
          h("details", {}, h("summary", {}, "Its query"), h("pre", {}, sqlText(each.sql))),
        ),
      ),
    ),
    waiting.differences.length > 0 && h("h4", {}, "How they differ"),
    h("ul", { class: "notes" }, waiting.differences.map((text) => h("li", {}, marked(text)))),
    waiting.own_words && h("div", { class: "row own" }, own, send),
  ];
}

/** A query that waits for a yes. */
function approval(waiting, reply) {
  return [
    h("h3", { tabindex: -1 }, "May this query run?"),
    h("p", {}, waiting.why),
    h("pre", { tabindex: 0, role: "region", "aria-label": "SQL" }, sqlText(waiting.sql)),
    h("p", { class: "soft" }, `Reads: ${waiting.reads}; database: ${waiting.database}`),
    h(
      "div",
      { class: "row" },
      button("Yes, run it", () => reply("yes"), { class: "main" }),
      button("No", () => reply("no")),
      button("Yes to all of this question", () => reply("all")),
    ),
  ];
}

/** Make the article of a question and follow it to its answer. `ask(text)` asks another one, `done(asked)` hears its end. */
export function follow(id, words, ask, done) {
  const leaving = new AbortController();
  const head = h("h2", { class: "asked", tabindex: -1 }, words);
  const became = h("div");
  const now = h("p", { class: "now" }, "Begins…");
  const steps = h("ol", { class: "steps", tabindex: 0, "aria-label": "Steps" });
  const log = h("details", { class: "log", open: true }, h("summary", {}, "Steps"), steps);
  const stop = button("Stop", () => post(`/v1/questions/${id}/cancel`), { class: "quiet" });
  const work = h("div", { class: "card work", "aria-busy": "true" }, h("div", { class: "row" }, now, stop), log);
  const place = h("div");
  const article = h("article", { "data-run": id }, head, became, work, place);
  article.leave = () => leaving.abort();

  function show(step) {
    steps.append(stepLine(step));
    steps.scrollTop = steps.scrollHeight;
    const text = `${step.agent}: ${step.text}`;
    now.textContent = text;
    announce(text.slice(0, 160));
  }

  async function replied(waiting) {
    await new Promise((resolve) => {
      const reply = async (text) => {
        await post(`/v1/questions/${id}/reply`, { reply: text });
        resolve();
      };
      now.textContent = "Waits for your reply";
      const form = waiting.kind === "approval" ? approval(waiting, reply) : clarification(waiting, reply);
      fill(place, h("section", { class: "card asks" }, waiting.refused && h("p", { class: "warn", role: "alert" }, waiting.refused), form));
      find("h3", place).focus();
    });
    fill(place);
    now.textContent = "Goes on…";
  }

  function end(asked) {
    const { answer, status } = asked;
    work.removeAttribute("aria-busy");
    log.open = false;
    fill(find("summary", log), `${count(steps.children.length, "step")}`);
    find(".row", work).remove();
    work.classList.add("over");
    if (answer?.became) {
      const correct = () => ask("", { instead: answer.became });
      fill(became, h("p", { class: "became" }, h("b", {}, "Understood as: "), answer.became, " ", h("button", { type: "button", class: "quiet", onclick: correct }, "Correct this")));
    }
    if (answer) {
      fill(place, answerCard(asked, ask));
      announce(`${answer.shown.status}. ${answer.columns.length ? `${answer.shown.trust}. ${answer.shown.rows_note}` : answer.words}`);
    } else {
      const what = { cancelled: "Stopped. What it had found so far is in its steps.", interrupted: "The server ended while this was asked." };
      const message = asked.error || what[status] || `It ended without an answer (${status}).`;
      const goOn = async () => {
        await post(`/v1/questions/${id}/resume`);
        article.leave();
        article.replaceWith(follow(id, asked.question, ask, done));
      };
      const again = status === "interrupted" ? button("Go on", goOn) : button("Ask again", () => ask(asked.question));
      fill(place, h("section", { class: "card" }, fault({ message, hint: asked.hint }), again));
    }
    done(asked);
  }

  (async () => {
    let after = "0";
    for (;;) {
      for await (const step of events(`/v1/questions/${id}/events`, leaving.signal, after)) {
        after = step.id;
        if (step.live) show(step);
      }
      const asked = await get(`/v1/questions/${id}`);
      head.textContent = asked.answer?.turn || asked.question;
      if (asked.status === "waiting") await replied(asked.waiting);
      else if (asked.status !== "running") return end(asked);
    }
  })().catch((error) => {
    if (!leaving.signal.aborted) fill(place, h("section", { class: "card" }, fault(error)));
  });
  return article;
}
