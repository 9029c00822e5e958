// The texts below an element that are hard to read: less contrast than `least` (WCAG 2) with what is behind them.
// Not looked at: what cannot be used now (WCAG excepts it), and the numbers inside plotly's cells, whose background
// is a picture (a test of the colours has these), and the numbers of outputs, which JupyterLab colours.
(root, least) => {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (below, color, alpha) => {
    for (const [style, opacity] of [[`rgb(${below})`, 1], [color, alpha]]) {
      pixel.globalAlpha = opacity;
      pixel.fillStyle = style;
      pixel.fillRect(0, 0, 1, 1);
    }
    return [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const behind = new Map(); // per element its colour and its opacity, with those of all around it
  const look = (element) => {
    if (!element) return { color: [255, 255, 255], opacity: 1 };
    if (!behind.has(element)) {
      const style = getComputedStyle(element);
      const outer = look(element.parentElement);
      const opacity = outer.opacity * Number(style.opacity);
      // Plotly's pictures are layers of SVG; the first of them is the paper.
      const paper = element.matches(".main-svg") && element.parentElement.querySelector(".main-svg");
      const fill = getComputedStyle(paper || element).backgroundColor;
      behind.set(element, { color: over(outer.color, fill, opacity), opacity });
    }
    return behind.get(element);
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const hard = new Map();
  let seen = 0;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest(":disabled, .heatmap-label, style, script, title, .jp-OutputPrompt")) continue;
    seen += 1;
    const style = getComputedStyle(element);
    const { color: back, opacity } = look(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const ink = over(back, color, opacity);
    const [low, high] = [luminance(ink), luminance(back)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    const kind = `${contrast.toFixed(2)}: rgb(${ink}) on rgb(${back}), ${element.tagName} ${element.className.baseVal ?? element.className}`;
    if (contrast < least && !hard.has(kind)) hard.set(kind, text.slice(0, 60));
  }
  return { seen, hard: [...hard].map(([kind, text]) => `${kind}: ${text}`) };
}
