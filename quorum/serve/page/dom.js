/** Builds the page's elements. Whatever comes from a database or a model becomes text, never markup. */

/** Make an element: `h("a", { href: "#", class: "x", onclick: go }, "text", other)`; false and null are left out. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child !== false && child != null && child !== ""));
  return made;
}

export const find = (selector, within = document) => within.querySelector(selector);

/** Replace what an element holds. */
export function fill(place, ...children) {
  place.replaceChildren(...children.flat(2).filter((child) => child !== false && child != null && child !== ""));
  return place;
}

/** The parts of a sentence, what stands in backticks as code. */
export const marked = (text) => text.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));

/** Say something to screen readers; sighted people see it elsewhere. */
export function announce(text) {
  find("#live").textContent = text;
}

/** "1 row", "2,000 rows". */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
}

/** A button that is busy while its work is under way; what goes wrong is shown beside it. */
export function button(label, work, attributes = {}) {
  const made = h("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", async () => {
    if (made.getAttribute("aria-disabled")) return;
    made.parentElement.querySelector(":scope > .fault")?.remove();
    made.setAttribute("aria-disabled", "true");
    try {
      await work(made);
    } catch (error) {
      made.parentElement.append(fault(error));
    }
    made.removeAttribute("aria-disabled");
  });
  return made;
}

/** An error for people: what happened, what to do. */
export function fault(error) {
  const { message = String(error), hint = "" } = error;
  return h("p", { class: "fault bad", role: "alert" }, message, hint && h("span", { class: "soft" }, ` ${hint}`));
}

const SQL = new RegExp(
  String.raw`(--[^\n]*|/\*[\s\S]*?\*/)|('(?:[^']|'')*')|\b(\d+(?:\.\d+)?)\b|` +
    String.raw`\b(select|from|where|group|order|by|having|limit|offset|join|left|right|inner|outer|full|cross|on|using|` +
    String.raw`as|and|or|not|in|is|null|like|ilike|between|exists|case|when|then|else|end|with|recursive|union|all|` +
    String.raw`except|intersect|distinct|over|partition|rows|range|qualify|asc|desc|cast|interval|values|true|false|` +
    String.raw`filter|nulls|first|last|lateral|unnest|window)\b`,
  "gi",
);

/** SQL with its words in colours. */
export function sqlText(sql) {
  const parts = [];
  let end = 0;
  for (const found of sql.matchAll(SQL)) {
    parts.push(sql.slice(end, found.index));
    const look = ["c", "s", "n", "k"][found.slice(1).findIndex(Boolean)];
    parts.push(h("span", { class: `sql-${look}` }, found[0]));
    end = found.index + found[0].length;
  }
  return h("code", {}, parts, sql.slice(end));
}
