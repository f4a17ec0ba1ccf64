// inspect.js: the page of interpretation. It has a part for each explained number (data.subjects). In a part, the user chooses
// a position of the prompt and a head, and all charts of the part follow.

const piece = (token) => token.replaceAll(" ", "·").replaceAll("\n", "↵") || "∅";
const plainName = (n) => ({ token: "token embedding", position: "position embedding", "final bias": "bias of the final norm" })[n] || `layer ${n.replace(".", " ")}`;

function diverge(e, v, most) {
  e.style.setProperty("background", `rgb(var(--${v > 0 ? "up" : "down"}) / ${(Math.min(1, Math.abs(v) / (most || 1)) * 0.55).toFixed(3)})`);
  return e;
}

// A subject: the explained number, in one model or in two. With one model, `pair` is false, and base and tuned are
// the same.
function subject(data, number) {
  const T = data.tokens.length, [LAYERS, HEADS] = data.shape, pair = data.of.length === 2;
  const base = data.of[0], tuned = data.of[data.of.length - 1], patched = data.patched;
  const side = (words) => words.map((w) => `“${w}”`).join(" or ");
  const words = data.explained === "words", good = side(data.good), bad = side(data.bad);
  const what = words ? "logit difference" : data.explained;
  const chosen = { t: T - 1, head: 0, watch: [], set(change) { Object.assign(chosen, change); for (const f of chosen.watch) f(); } };
  const gap = () => tuned.difference[chosen.t] - base.difference[chosen.t];
  // Of a tiny difference the shares would be huge percentages that say nothing.
  const effects = () => Math.max(...patched.rows.map((r) => (r ? Math.abs(r[chosen.t]) : 0)), Math.abs(patched.out[chosen.t]));
  const share = (effect) => (Math.abs(gap()) < Math.max(0.01, 0.1 * effects()) ? "" : `${Math.round((100 * effect) / gap())} %`.replace("-", "−"));

  // An element that is rebuilt whenever the choice changes.
  const live = (make, kind = "div") => {
    const host = h(kind), again = () => host.replaceChildren(...[make()].flat(9).filter(Boolean));
    chosen.watch.push(again);
    again();
    return host;
  };

  // ---- what it says ----

  function title() {
    const before = fixed(base.difference[chosen.t]), after = fixed(tuned.difference[chosen.t]);
    const name = words ? `${good} over ${bad}` : data.explained === "value" ? "Value" : "Reward";
    return shown(pair ? `${name}: ${before} before, ${after} after` : `${name}: ${after}`);
  }

  function sentence() {
    const t = chosen.t, odds = (d) => `${fmt(Math.exp(Math.abs(d)), 2)} to 1 for ${d >= 0 ? good : bad}`;
    const single = words && data.good.length + data.bad.length === 2; // with several words on a side, the mean of their logits
    const moves = data.names.map((n, i) => [plainName(n), tuned.rows[i][t] - (pair ? base.rows[i][t] : 0)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const restores = patched && data.names.map((n, i) => [plainName(n), patched.rows[i] ? patched.rows[i][t] : 0]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const three = (list) => list.slice(0, 3).map(([n, v]) => `${n} ${fixed(v)}`).join(", ");
    return h("section.verdict.none", h("div.mark", { "aria-hidden": "true" }, pair ? "∆" : "Σ"), h("div",
      h("h1", title()),
      h("p", words ? "Logits after “" : "After “", h("b.mono", shown(data.tokens.slice(0, t + 1).join(""))), "”. ",
        single && [shown(`The odds are ${odds(base.difference[t])} in the base, ${odds(tuned.difference[t])} in the tuned model. `)],
        `${pair ? "What moved most" : "What adds most"}: ${three(moves)}. `,
        restores && `Put into the base, these change it most: ${three(restores)}. `,
        data.kl && `KL of the next token ${fmt(data.kl[t], 3)} nats.`),
      h("ul.checks", h(`li.${data.error < 1e-4 ? "yes" : "no"}`, `contributions add up to the ${what} (largest error ${data.error.toExponential(0)})`),
        data.notes.map((n) => h("li.open", shown(n))))));
  }

  function strip() {
    const moved = tuned.difference.map((d, t) => (pair ? d - base.difference[t] : d - (t ? tuned.difference[t - 1] : 0))), most = Math.max(...moved.map(Math.abs));
    const choose = (t) => () => { chosen.set({ t }); place.querySelectorAll(".strip button")[t].focus(); };
    return h("div.strip", { role: "group", "aria-label": "Position of the prompt" }, data.tokens.map((token, t) => diverge(h("button", {
      type: "button", "aria-pressed": String(t === chosen.t), title: pair ? `${fixed(base.difference[t])} to ${fixed(tuned.difference[t])}` : fixed(tuned.difference[t]), on: { click: choose(t) },
    }, shown(piece(token))), moved[t], most)));
  }

  // ---- along the prompt, and through the layers ----

  const both = (x, of) => [pair && { label: "base", color: "system", x, v: of(base) }, { label: pair ? "tuned" : what, color: "reward", x, v: of(tuned) }].filter(Boolean);
  const positions = data.tokens.map((_, t) => t), pieces = data.tokens.map((t) => piece(t).slice(0, 8));

  function along() {
    const common = { names: pieces, zero: true, mark: chosen.t, pick: (t) => chosen.set({ t }) };
    return [chart({ ...common, title: what[0].toUpperCase() + what.slice(1), unit: words ? `${good} − ${bad}` : "", series: both(positions, (m) => m.difference) }),
      data.kl && chart({ ...common, title: "KL of the next token", unit: "nats, tuned against base", series: [{ label: "KL", color: "reference", x: positions, v: data.kl }] })];
  }

  const stages = Array.from({ length: LAYERS + 1 }, (_, i) => i), stageNames = stages.map((i) => (i ? `after ${i - 1}` : "embedding"));

  function through() {
    const common = { names: stageNames, zero: true, height: 190 }, at = (rows) => rows.map((r) => r[chosen.t]);
    return [chart({ ...common, title: "Accumulated", unit: "the final norm's scale frozen", series: both(stages, (m) => at(m.accumulated)) }),
      chart({ ...common, title: "Logit lens", unit: "as if the model ended here", series: both(stages, (m) => at(m.lens)) })];
  }

  // ---- contributions: a dumbbell for each component ----

  function components() {
    const t = chosen.t, effect = (i) => (patched && patched.rows[i] ? patched.rows[i][t] : null);
    const rows = data.names.map((n, i) => [plainName(n), base.rows[i][t], tuned.rows[i][t], effect(i)]);
    const size = (r) => Math.max(Math.abs(r[1]), Math.abs(r[2]), Math.abs(r[3] || 0)), most = Math.max(...rows.map(size));
    const total = (name, some) => [name, some.reduce((s, r) => s + r[1], 0), some.reduce((s, r) => s + r[2], 0), null];
    const small = rows.filter((r) => size(r) < 0.03 * most), large = rows.filter((r) => size(r) >= 0.03 * most), sum = total("sum", rows);
    if (small.length) large.push(total(`${small.length} others, each below 3 % of the largest`, small));
    const all = [...large, sum], lo = Math.min(0, ...all.flatMap((r) => r.slice(1, 3))), hi = Math.max(0, ...all.flatMap((r) => r.slice(1, 3)));
    const X = (v) => 6 + ((v - lo) / (hi - lo || 1)) * 288;
    const dumbbell = (a, b) => svg("svg", { viewBox: "0 0 300 18", class: "dumbbell", "aria-hidden": "true" },
      svg("line", { class: "axis", x1: X(0), x2: X(0), y1: 0, y2: 18 }),
      tint(svg("line", { class: "curve", x1: X(pair ? a : 0), x2: X(b), y1: 9, y2: 9 }), "reward"),
      pair ? tint(svg("circle", { class: "ring", cx: X(a), cy: 9, r: 3.5 }), "system") : "", tint(svg("circle", { class: "cell", cx: X(b), cy: 9, r: 4 }), "reward"));
    if (patched) all.push(["final norm and head", null, null, patched.out[t]]);
    const cells = ([name, a, b, e]) => [pair && h("td.num.wideonly", a == null ? "" : fixed(a, 3)), h("td.num.wideonly", b == null ? "" : fixed(b, 3)),
      pair && h("td.num", a == null ? "" : fixed(b - a, 3)), patched && [h("td.num", e == null ? "" : fixed(e, 3)), h("td.num.wideonly", e == null ? "" : share(e))]];
    return h("div.scroll", h("table.parts",
      h("tr", h("th", "component"), pair && h("th.num.wideonly", "base"), h("th.num.wideonly", pair ? "tuned" : "adds"), pair && h("th.num", "change"),
        patched && [h("th.num", "patched"), h("th.num.wideonly", "restores")], h("th")),
      all.map((r) => h(r[0] === "sum" ? "tr.sum" : "tr", h("td", r[0]), cells(r), h("td", r[1] == null ? "" : dumbbell(r[1], r[2]))))));
  }

  // ---- heads ----

  function heads() {
    const t = chosen.t, most = Math.max(...data.of.flatMap((m) => m.heads.flatMap((layer) => layer[t].map(Math.abs))));
    const cell = (l, n, v, name) => {
      const k = data.top.findIndex(([a, b]) => a === l && b === n), say = `head ${l}.${n}, ${name}: ${signed(v)}`, text = HEADS <= 8 && fixed(v);
      if (k < 0) return diverge(h("span", { title: say }, text), v, most);
      return diverge(h("button", { type: "button", title: say, "aria-label": say, "aria-pressed": String(k === chosen.head), on: { click: () => chosen.set({ head: k }) } }, text), v, most);
    };
    const grid = (name, of) => {
      const cells = h("div.heads", h("span"), Array.from({ length: HEADS }, (_, n) => h("span.soft", String(n))),
        Array.from({ length: LAYERS }, (_, l) => [h("span.soft", String(l)), Array.from({ length: HEADS }, (_, n) => cell(l, n, of(l, n), name))]));
      cells.style.setProperty("grid-template-columns", `2em repeat(${HEADS}, minmax(0, 1fr))`);
      const fig = figure({ title: name });
      fig.append(cells);
      return fig;
    };
    if (!pair) return h("div.three", grid("adds", (l, n) => tuned.heads[l][t][n]));
    return h("div.three", grid("base", (l, n) => base.heads[l][t][n]), grid("tuned", (l, n) => tuned.heads[l][t][n]),
      grid("change", (l, n) => tuned.heads[l][t][n] - base.heads[l][t][n]), patched && grid("patched into the base", (l, n) => patched.heads[l][t][n]));
  }

  // ---- attention of the chosen head ----

  // One byte for each pair of the lower triangle; 255 stands for 1.
  const unpacked = new Map();
  function attention(model, k) {
    const key = `${model}.${k}`;
    if (!unpacked.has(key)) unpacked.set(key, Uint8Array.from(atob(data.of[model].attention[k]), (c) => c.charCodeAt(0)));
    const bytes = unpacked.get(key);
    return (t, s) => bytes[(t * (t + 1)) / 2 + s] / 255;
  }

  function pattern(name, of) {
    const S = Math.min(20, Math.max(5, Math.floor(330 / T))), left = 74, W = left + S * T + 4, fig = figure({ title: name });
    const box = svg("svg", { viewBox: `0 0 ${W} ${S * T + 62}`, role: "img", "aria-label": name });
    for (let t = 0; t < T; t++) {
      for (let s = 0; s <= t; s++) {
        const v = of(t, s), r = svg("rect", { x: left + s * S, y: t * S, width: S - 0.5, height: S - 0.5 });
        r.style.setProperty("fill", `rgb(var(--${v >= 0 ? "up" : "down"}) / ${Math.min(1, Math.abs(v)).toFixed(3)})`);
        r.append(svg("title", {}, `${piece(data.tokens[t])} reads ${piece(data.tokens[s])}: ${fmt(v, 2)}`));
        box.append(r);
      }
      if (S < 9) continue; // no room for words
      box.append(svg("text", { x: left - 4, y: (t + 0.72) * S, "text-anchor": "end" }, ...shown(piece(data.tokens[t]).slice(0, 10)).map((n) => n.textContent ?? n)),
        svg("text", { transform: `translate(${left + (t + 0.3) * S},${T * S + 5}) rotate(90)` }, ...shown(piece(data.tokens[t]).slice(0, 9)).map((n) => n.textContent ?? n)));
    }
    box.append(svg("rect", { class: "frame", x: left - 1, y: chosen.t * S - 1, width: (chosen.t + 1) * S + 1, height: S + 1 }));
    box.style.setProperty("max-width", `${W * 1.3}px`);
    fig.append(box);
    return fig;
  }

  function sources() {
    const rows = data.of.map((m) => m.source[chosen.head][chosen.t]), most = Math.max(...rows.flat().map(Math.abs));
    const row = (values) => h("div.strip", values.map((v, s) => diverge(h("span.source", { title: signed(v) }, shown(piece(data.tokens[s]))), v, most)));
    return h("dl", rows.map((r, k) => [h("dt", pair ? ["base", "tuned"][k] : "sources"), h("dd", row(r))]));
  }

  function attentions() {
    if (!data.of[0].attention.length) return h("p", "The prompt is too long: attention is kept for prompts of at most 1024 tokens.");
    const a = attention(0, chosen.head), b = attention(data.of.length - 1, chosen.head);
    return [h("h3", `Head ${data.top[chosen.head].join(".")}: where what it wrote here came from`), sources(),
      h("div.three", pattern(pair ? "Attention, base" : "Attention", a), pair && [pattern("Attention, tuned", b), pattern("Change", (t, s) => b(t, s) - a(t, s))])];
  }

  // ---- tokens ----

  function moved() {
    const rows = data.moved[chosen.t], half = rows.length / 2, most = Math.max(...rows.flatMap((r) => (r ? r.slice(1) : 0)));
    const bar = (p, color) => tint(svg("svg", { viewBox: "0 0 100 8", class: "bar", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "cell", width: (p / most) * 100, height: 8 })), color);
    const row = ([word, p, q]) => h("tr", h("td", shown(piece(word))), h("td.num", fmt(p, 2)), h("td.num", fmt(q, 2)),
      h("td.num", q > p ? `× ${fmt(q / p, 2)}` : `÷ ${fmt(p / q, 2)}`), h("td.bars", bar(p, "system"), bar(q, "reward")));
    const list = (name, some) => h("div", h("h3", name), h("table.words",
      h("tr", h("th", "next token"), ["base", "tuned", "ratio"].map((w) => h("th.num", w)), h("th")), some.filter(Boolean).map(row)));
    return h("div.two", list("Risen", rows.slice(0, half)), list("Fallen", rows.slice(half)));
  }

  // ---- its part of the page ----

  const patching = "“Patched” is the change of the base's number when it gets that output of the tuned model at all tokens and later parts are recomputed; “restores” is its share of the whole difference. A component can add much and cause little. Patched effects do not add up.";
  const SECTIONS = [
    ["Prompt", "Along the prompt", "Choose a position above or in a curve, or go with ← and →; the rest follows.", live(along, "div.two")],
    ["Layers", "Through the layers", "Left: what has been written into the stream so far, weighed as the final norm weighs it here; the steps add up. Right: what each stage would say if it were the last.", live(through, "div.two")],
    ["Components", "By component", `What each part writes into the stream, in ${words ? "logits of the difference" : `units of the ${data.explained}`}. ${pair ? "○ base, ● tuned. " : ""}The sum is the ${what}, biases included. ${patched ? patching : ""}`, live(components)],
    ["Heads", "By head", `Rows are layers. ${words ? "Blue speaks for the first side, orange for the second" : "Blue adds, orange takes away"}. Choose a head to see its attention below.`, live(heads)],
    ["Attention", "Attention", "Who reads whom; the marked row is the position chosen above. The strips weigh attention by what it carried: their sum is the head's contribution.", live(attentions)],
    data.moved && ["Tokens", "Tokens that moved most", "Next-token probabilities here, by their change.", live(moved)],
  ].filter(Boolean);
  const id = (name) => (number ? `${name}-${number + 1}` : name);
  const place = h("div.subject", live(sentence), live(strip), SECTIONS.flatMap(([name, heading, text, part]) => [h("h2", { id: id(name) }, heading), h("p", text), part]));
  const nav = [h("b", shown(data.models.join(" against "))), SECTIONS.map(([name]) => h("a", { href: `#${id(name)}` }, name))];
  const foot = h("p", shown(`${data.models.join(" against ")}: prompt of ${T} tokens; attention of the ${data.of[0].attention.length} heads that ${pair ? "moved" : "add"} most.`));
  return { nav, place, foot, step: (by) => chosen.set({ t: Math.max(0, Math.min(T - 1, chosen.t + by)) }) };
}

const subjects = data.subjects.map(subject);
page.append(h("nav", { "aria-label": "Sections" }, subjects.map((s) => s.nav)), ...subjects.map((s) => s.place),
  h("footer", subjects.map((s) => s.foot), h("p", "Computed in f32. The page holds all its data and loads nothing.")));

document.addEventListener("keydown", (e) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
  if (!by) return;
  for (const s of subjects) s.step(by);
  e.preventDefault();
});
