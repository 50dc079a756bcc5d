// What a person would see of the page as it is shown now.
(() => {
  const root = document.documentElement;
  const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const all = [...document.body.querySelectorAll("*")];

  // A colour as red, green, blue and how much it covers.
  const colour = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a));
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(colour(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  // https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const texts = all.filter((it) => seen(it) && [...it.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  const faint = texts
    .map((it) => ({ text: it.textContent.slice(0, 40), ratio: contrast(colour(getComputedStyle(it).color), background(it)) }))
    .filter((it) => it.ratio < 4.5);

  const bars = [...document.querySelectorAll(".track a")].filter(seen);
  const inside = (bar) => {
    const [box, track] = [bar.getBoundingClientRect(), bar.parentElement.getBoundingClientRect()];
    return box.width >= 3 && box.height >= 8 && box.left >= track.left - 0.5 && box.right <= track.right + 0.5;
  };
  return {
    title: document.title,
    ran: window.ran === undefined ? null : String(window.ran),
    active: all.filter((it) => it.matches("script,img,iframe,object,embed,svg,form,link,base,style,video,input")).map((it) => it.outerHTML),
    handlers: all.filter((it) => it.getAttributeNames().some((name) => name.startsWith("on"))).map((it) => it.outerHTML),
    overflow: root.scrollWidth - root.clientWidth,
    beyond: all
      .filter((it) => seen(it) && !it.closest(".wide") && it.getBoundingClientRect().right > root.clientWidth + 0.5)
      .map((it) => it.outerHTML.slice(0, 200)),
    bars: bars.length,
    outside: bars.filter((it) => !inside(it)).map((it) => it.outerHTML.slice(0, 200)),
    pauses: document.querySelectorAll(".pauses i").length,
    calls: document.querySelectorAll("details.call").length,
    open: document.querySelectorAll("details.call[open]").length,
    texts: texts.length,
    faint,
  };
})();
