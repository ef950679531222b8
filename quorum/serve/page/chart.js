/** Charts: the server declares them, Vega-Lite draws them, without evaluating any text as code. */

import { get } from "./api.js";
import { count, fill, h } from "./dom.js";

const KINDS = { none: "None", bar: "Bars", line: "Line", point: "Points" };

let loading = null;
const script = (src) =>
  new Promise((resolve, reject) => {
    const failed = () => reject(Error(`${src} cannot be loaded.`));
    document.head.append(h("script", { src, onload: resolve, onerror: failed }));
  });

/** The libraries, loaded with the first chart. */
async function library() {
  loading ??= (async () => {
    await script("/page/vendor/vega.min.js");
    await script("/page/vendor/vega-lite.min.js");
    return import("./vendor/vega-interpreter.js");
  })();
  return loading;
}

/** Draw a chart that the server declared, in a place of the page. */
export async function draw(place, { spec, alt, note }) {
  const { expressionInterpreter } = await library();
  const { vega, vegaLite } = globalThis;
  const wide = Math.min(place.clientWidth, 720) - 150;
  for (const panel of spec.vconcat ?? []) panel.width = Math.max(panel.width > wide ? 200 : 0, wide);
  const runtime = vega.parse(vegaLite.compile(spec).spec, null, { ast: true });
  const drawing = h("div", { class: "drawing", role: "img", "aria-label": alt });
  fill(place, h("figure", {}, drawing, h("figcaption", { class: "soft" }, [alt, note].filter(Boolean).join("; "))));
  const loader = vega.loader();
  loader.load = () => Promise.reject(Error("A chart loads nothing."));
  await new vega.View(runtime, { expr: expressionInterpreter, renderer: "svg", container: drawing, hover: false, loader }).runAsync();
  drawing.firstElementChild?.setAttribute("aria-hidden", "true");
}

/** The chart of a run's rows with the choice of its kind; nothing where the rows have no shape for one. */
export function chart(run, first = "") {
  const place = h("div", { class: "plot" });
  const name = `chart-${run}`;
  const choices = h("div", { class: "choices" });
  const whole = h("fieldset", { class: "chart", hidden: true }, h("legend", {}, "Chart"), choices, place);

  let latest = 0;
  async function show(kind) {
    const own = ++latest;
    if (kind === "none") return fill(place);
    const found = await get(`/v1/questions/${run}/chart`, { kind });
    if (found.spec) await library();
    if (own !== latest) return found; // another kind was chosen meanwhile
    whole.hidden = !found.spec;
    if (found.spec) await draw(place, found);
    return found;
  }

  (async () => {
    const found = await show(first);
    fill(
      choices,
      Object.entries(KINDS).map(([kind, label]) => {
        const change = () => show(kind).catch((error) => fill(place, h("p", { class: "bad", role: "alert" }, error.message)));
        const input = { type: "radio", name, value: kind, checked: kind === found?.kind, onchange: change };
        return h("label", {}, h("input", input), label);
      }),
    );
  })().catch((error) => fill(place, h("p", { class: "bad" }, error.message)));
  return whole;
}
