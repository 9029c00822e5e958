// What is drawn column by column: pixels in an array, put on the canvas at once. Rectangles of a pixel cost much more.

// The pixels right of the names and below the axis, empty. The same array in every frame of the same size.
function clearPixels(context, state) {
  const scale = context.getTransform().a;
  const [left, top] = [Math.round(GUTTER * scale), Math.round(AXIS * scale)];
  const [width, height] = [context.canvas.width - left, context.canvas.height - top];
  if (width < 1 || height < 1) return (state.pixels = null);
  if (state.pixels?.width !== width || state.pixels.height !== height) {
    const image = context.createImageData(width, height);
    state.pixels = { width, height, image, words: new Uint32Array(image.data.buffer) };
  }
  Object.assign(state.pixels, { left, top, scale });
  state.pixels.words.fill(0);
  return state.pixels;
}

function putPixels(context, { image, left, top }) {
  context.putImageData(image, left, top);
}

const wordOf = new Map();

// A color as the word of a pixel. color: #rrggbb, or as a style has it.
function pixelOf(color, alpha = 1) {
  const key = `${color} ${alpha}`;
  if (!wordOf.has(key)) {
    const hex = /^#(..)(..)(..)$/.exec(color)?.slice(1).map((part) => parseInt(part, 16));
    const [red, green, blue] = hex ?? color.match(/[\d.]+/g).map(Number);
    const bytes = new Uint8Array([red, green, blue, Math.round(255 * alpha)]);
    wordOf.set(key, new Uint32Array(bytes.buffer)[0]);
  }
  return wordOf.get(key);
}

// A row of words, one for each column, from one line to another; the lines are of the state, fractions are rounded.
function paintBand(pixels, row, from, to) {
  const [first, last] = linesOf(pixels, from, to);
  for (let line = first; line < last; line++) {
    const at = line * pixels.width;
    for (let x = 0; x < row.length; x++) if (row[x]) pixels.words[at + x] = row[x];
  }
}

function linesOf({ scale, top, height }, from, to) {
  return [from, to].map((y) => Math.min(Math.max(Math.round(y * scale) - top, 0), height));
}

// Columns of one color that stand on a base line, or from `below` on; heights are of the state.
function paintColumns(pixels, base, below, above, word) {
  const { width, scale, top, height } = pixels;
  const foot = Math.round(base * scale) - top;
  for (let x = 0; x < above.length; x++) {
    const last = Math.min(foot - Math.round((below ? below[x] : 0) * scale), height);
    for (let line = Math.max(foot - Math.round(above[x] * scale), 0); line < last; line++) pixels.words[line * width + x] = word;
  }
}
