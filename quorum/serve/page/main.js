/** The page: a conversation with a database, its history and its schema beside it. */

import { get, post } from "./api.js";
import { announce, count, fault, fill, find, h } from "./dom.js";
import { history, schema } from "./panels.js";
import { editor } from "./sql.js";
import { follow } from "./talk.js";

const talk = find("#talk");
const words = find("#question");
const chosen = find("#database");
const database = () => chosen.value;
let last = null; // the question that a follow-up follows
let databases = [];
let opening = ""; // the old answer that is being fetched
const TURNS = 20; // of a conversation that are shown with an old answer

const panels = { history: history(database), schema: schema(database) };

// Panels

function showPanel(name) {
  const side = find("aside");
  const open = name !== null && find(`#${name}`).hidden;
  for (const each of Object.keys(panels)) {
    find(`#${each}`).hidden = !(open && each === name);
    find(`#show-${each}`).setAttribute("aria-expanded", String(open && each === name));
  }
  side.hidden = !open;
  if (open) {
    panels[name]();
    find(`#${name} input`).focus();
  }
}

const isNarrow = () => matchMedia("(max-width: 68rem)").matches;
for (const name of Object.keys(panels)) find(`#show-${name}`).addEventListener("click", () => showPanel(name));
document.addEventListener("keydown", (event) => {
  const open = Object.keys(panels).find((name) => find(`#${name}`).contains(document.activeElement));
  if (event.key === "Escape" && open) {
    showPanel(null);
    find(`#show-${open}`).focus();
  }
});

// The conversation

function leave() {
  for (const article of talk.querySelectorAll("article")) article.leave?.();
  fill(talk);
  last = null;
  mode();
}

/** Show whether the next question is a follow-up. */
function mode() {
  find("#new").hidden = talk.querySelector(".welcome") !== null;
  words.placeholder = last ? "Ask a follow-up, such as “and by month?”" : "Ask in plain language";
  find("label[for=question]").textContent = last ? "Follow-up question" : "Question";
}

async function spent() {
  const used = await get("/v1/spent");
  const left = used.left_usd === null ? "" : ` · $${used.left_usd.toFixed(2)} left`;
  const price = used.usd === 0 ? "$0" : `$${used.usd.toFixed(used.usd < 1 ? 4 : 2)}`;
  fill(find("#spent"), h("span", { class: "unseen" }, "Cost so far: "), `${price} · ${count(used.questions, "question")}${left}`);
  find("#spent").title = `This month: ${count(used.calls, "model call")}`;
}

function show(id, text) {
  talk.querySelector(".welcome")?.remove();
  const article = follow(id, text, ask, (asked) => {
    if (asked.answer && article === talk.querySelector("article:last-of-type")) last = asked.id;
    if (databases.some((each) => each.name === asked.database)) chosen.value = asked.database;
    mode();
    spent().catch(() => {});
    if (!find("#history").hidden) panels.history();
  });
  talk.append(article);
  mode();
  article.scrollIntoView({ block: "start" });
}

/** Ask; as a follow-up where there is an answer, unless it is another reading of that. */
async function ask(text, { instead = "", after = "" } = {}) {
  if (instead) {
    words.value = instead;
    words.focus();
    return;
  }
  await ready; // the first look at a database may take a while
  const body = { question: text, database: after ? "" : database(), after, clarify: find("#clarify").checked ? "on" : "off" };
  if (find("#approve").checked) body.approve = "costly";
  const asked = await post("/v1/questions", body);
  push(asked.id);
  show(asked.id, text);
}

function push(id) {
  window.history.pushState(null, "", `#run=${id}`);
}

async function submit(event) {
  event.preventDefault();
  find("#composer > .fault")?.remove();
  const text = words.value.trim();
  if (!text) return words.focus();
  const button = find("#composer [type=submit]");
  button.disabled = true;
  try {
    await ask(text, { after: last ?? "" });
    words.value = "";
  } catch (error) {
    find("#composer").append(fault(error));
  } finally {
    button.disabled = false;
    words.focus();
  }
}

// Where the page begins

async function welcome() {
  leave();
  const mine = databases.find((each) => each.name === database());
  const place = h(
    "section",
    { class: "welcome" },
    h("h1", {}, "What would you like to know?"),
    mine?.error && h("p", { class: "bad", role: "alert" }, mine.error),
    mine && !mine.error && h("p", { class: "soft" }, `${mine.name}: ${count(mine.tables, "table")}. Every query only reads.`),
    mine?.examples?.length > 0 && h("ul", {}, mine.examples.map((text) => h("li", {}, h("button", { type: "button", onclick: () => ask(text) }, text)))),
  );
  fill(talk, place);
  mode();
}

function route() {
  const id = /^#run=([\w.-]+)$/.exec(location.hash)?.[1];
  if (!id) return location.hash === "#question" ? undefined : welcome();
  if (isNarrow()) showPanel(null);
  const there = talk.querySelector(`[data-run="${CSS.escape(id)}"]`);
  if (there) return there.scrollIntoView();
  return opening === id ? undefined : reopen(id); // a change of the address is heard twice
}

/** Show an old answer below the turns of its conversation that came before it. */
async function reopen(id) {
  const turns = [];
  opening = id;
  try {
    for (let each = id; each && turns.length < TURNS; each = turns[0].after) turns.unshift(await get(`/v1/questions/${each}`));
  } finally {
    if (opening === id) opening = "";
  }
  if (opening || location.hash !== `#run=${id}`) return; // somebody went on meanwhile
  leave();
  for (const each of turns) show(each.id, each.question);
  find(`[data-run="${CSS.escape(id)}"] .asked`, talk).focus();
}

async function begin() {
  const found = await get("/v1/databases");
  ({ databases } = found);
  document.body.classList.toggle("ask-only", !found.sql);
  fill(chosen, databases.map((each) => h("option", { value: each.name }, each.name)));
  chosen.disabled = databases.length < 2;
  routed();
  spent().catch(() => {});
}

find("#composer").addEventListener("submit", submit);
words.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  find("#composer").requestSubmit();
});
find("#write-sql").addEventListener("click", () => {
  talk.querySelector(".welcome")?.remove();
  const card = h("section", { class: "card" }, h("h2", { class: "asked" }, "Your own query"));
  card.append(editor("", database(), { onClose: () => card.remove() }));
  talk.append(card);
  mode();
  find("textarea", card).focus();
});
chosen.addEventListener("change", () => {
  location.hash = "";
  welcome();
  for (const name of Object.keys(panels)) if (!find(`#${name}`).hidden) panels[name]();
  announce(`Database ${database()}`);
});
const routed = () => Promise.resolve(route()).catch((error) => fill(talk, fault(error)));
addEventListener("hashchange", routed);
addEventListener("popstate", routed);
const ready = begin();
ready.catch((error) => fill(talk, fault(error)));
