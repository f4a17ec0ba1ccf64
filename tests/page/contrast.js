// Finds the visible text with the lowest contrast to its background (WCAG 2.1), from the computed
// colours. The background of a text is the result of all backgrounds behind it, since some of them
// are partly transparent.
(() => {
  const parse = (text) => {
    const n = (text.match(/[\d.]+%?/g) || []).map(parseFloat);
    return text.startsWith("color(srgb") ? [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1] : [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) layers.unshift(parse(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  let least = [Infinity, ""], count = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.data.trim() || !e.getClientRects().length || style.visibility === "hidden") continue;
    if (e.closest("script, style, noscript")) continue;
    const color = parse(e instanceof SVGElement ? style.fill : style.color), below = ground(e);
    const a = light(over(color, below)), b = light(below), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    count++;
    if (ratio < least[0]) least = [ratio, node.data.trim().slice(0, 60)];
  }
  return { least: least[0], text: least[1], count };
})()
