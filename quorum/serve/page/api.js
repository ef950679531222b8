/** Talks to the server this page came from: JSON, files, and the steps of a question as they happen. */

import { find } from "./dom.js";

const KEY = "quorum-key";

/** What the server refused, or that it is not there. */
export class Fault extends Error {
  constructor(status, { message, hint = "", kind = "" }) {
    super(message);
    Object.assign(this, { status, hint, kind });
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;

/** Ask for an API key; it is kept for this tab alone. */
let asking = null;
function askForKey(refused) {
  asking ??= new Promise((resolve) => {
    const dialog = find("#key");
    find(".fault", dialog).textContent = refused ? "The server does not know that key." : "";
    dialog.onclose = () => {
      const input = find("input", dialog);
      if (input.value.trim()) sessionStorage.setItem(KEY, input.value.trim());
      input.value = "";
      asking = null;
      resolve(); // without a key the server refuses again, and so it is asked for again
    };
    dialog.showModal();
  });
  return asking;
}

/** Fetch from the server; the reply is a good one, else a `Fault` is thrown. */
async function request(path, { body, headers = {}, ...more } = {}) {
  for (;;) {
    const given = sessionStorage.getItem(KEY);
    const all = { ...headers, ...(given && { Authorization: `Bearer ${given}` }) };
    if (body !== undefined) all["Content-Type"] = "application/json";
    let reply;
    try {
      const method = body === undefined ? "GET" : "POST";
      reply = await fetch(path, { method, headers: all, body: body && JSON.stringify(body), ...more });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Fault(0, { message: "The server cannot be reached.", hint: "Is quorum serve still running?" });
    }
    if (reply.ok) return reply;
    if (reply.status === 401) {
      await askForKey(given !== null);
      continue;
    }
    const told = await reply.json().catch(() => ({}));
    throw new Fault(reply.status, told.error ?? { message: `The server replied ${reply.status}.` });
  }
}

/** A path with its query; what is empty is left out. */
export function at(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export const get = async (path, query) => (await request(at(path, query))).json();
export const post = async (path, body = {}) => (await request(path, { body })).json();

/** Save a file of the server under a name. A link could not send the key. */
export async function download(path, name) {
  save(await (await request(path)).blob(), name);
}

/** Save what is here already. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function parsed(block) {
  const message = { event: "message", data: "", id: "" };
  for (const line of block.split("\n")) {
    const [name, ...rest] = line.split(":");
    if (name in message) message[name] = rest.join(":").replace(/^ /, "");
  }
  return message;
}

/**
 * Yield server-sent events until the server says that there are no more. A line that breaks is taken up
 * where it broke (`Last-Event-ID`). EventSource does the same, but cannot send a key.
 */
export async function* events(path, signal, after = "0") {
  for (let wait = 250; ; wait = Math.min(2 * wait, 8000)) {
    try {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": after };
      const reply = await request(path, { headers, signal });
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const blocks = (text + read.value).replaceAll("\r\n", "\n").split("\n\n");
        text = blocks.pop();
        for (const { event, data, id } of blocks.map(parsed)) {
          if (event === "end") return;
          after = id || after;
          wait = 250;
          if (data) yield { ...JSON.parse(data), id: after };
        }
      }
    } catch (error) {
      if (signal.aborted || error.status) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
