// Drawing a timeline on a canvas: an axis of cycles, waves in rows, the share of units with work, and of stalls.

const GUTTER = 168; // pixels of names on the left
const AXIS = 24;
const ROW = 16;
const UNIT = 24;
const STALLS = 40;
const MOST_ROW_PIXELS = 416;
const LEAST_PIXELS = 8; // for each event of a wave in sight, for each to be drawn; with fewer, steps of time are

function ticks(from, to, pixels) {
  const least = ((to - from) * 90) / Math.max(pixels, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= least) * power);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

function whole(number) {
  return Math.round(number).toLocaleString("en-US");
}

// What is drawn in one place: see `mountTimeline` for the state.
function drawTimeline(context, state) {
  const { width, height, ink } = state;
  context.clearRect(0, 0, width, height);
  context.font = "11px sans-serif";
  context.textBaseline = "middle";
  const first = Math.floor(state.scroll / ROW);
  const last = Math.min(state.rows.length, Math.ceil((state.scroll + state.rowsHeight) / ROW));
  const rows = state.rows.slice(first, last).map((row, i) => [row, AXIS + (first + i) * ROW - state.scroll]);
  const charts = AXIS + state.rowsHeight;
  const pixels = clearPixels(context, state);
  if (pixels) {
    for (const [row, y] of rows) paintRow(pixels, state, row, y);
    state.shownUnits.forEach((unit, i) => paintUnit(pixels, state, unit, charts + i * UNIT));
    paintStalls(pixels, state, charts + state.shownUnits.length * UNIT);
    putPixels(context, pixels);
  }
  drawAxis(context, state);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, width, state.rowsHeight);
  context.clip();
  for (const [row, y] of rows) drawRow(context, state, row, y);
  context.restore();
  state.shownUnits.forEach((unit, i) => drawUnit(context, state, unit, charts + i * UNIT));
  drawStalls(context, state, charts + state.shownUnits.length * UNIT);
  context.globalAlpha = 0.25;
  context.fillStyle = ink;
  context.fillRect(GUTTER - 1, AXIS, 1, height - AXIS);
  context.globalAlpha = 1;
}

function toX(state, cycle) {
  return GUTTER + ((cycle - state.from) / (state.to - state.from)) * (state.width - GUTTER);
}

function drawAxis(context, state) {
  context.fillStyle = state.ink;
  context.textAlign = "left";
  context.fillText("cycle", 4, AXIS / 2);
  context.textAlign = "center";
  for (const tick of ticks(state.from + state.zero, state.to + state.zero, state.width - GUTTER)) {
    const x = toX(state, tick - state.zero);
    context.globalAlpha = 0.15;
    context.fillRect(x, AXIS - 5, 1, state.height);
    context.globalAlpha = 1;
    const half = context.measureText(whole(tick)).width / 2;
    if (x - half > GUTTER && x + half < state.width) context.fillText(whole(tick), x, AXIS / 2 - 2);
  }
}

function drawName(context, state, name, y, height) {
  context.fillStyle = state.ink;
  context.textAlign = "left";
  context.fillText(name, 4, y + height / 2, GUTTER - 8);
}

function drawRow(context, state, row, y) {
  if (row.head !== undefined) {
    context.font = "bold 11px sans-serif";
    drawName(context, state, row.head, y, ROW);
    context.font = "11px sans-serif";
    return;
  }
  drawName(context, state, row.name, y, ROW);
  context.save();
  context.beginPath();
  context.rect(GUTTER, y, state.width - GUTTER, ROW);
  context.clip();
  const trace = state.traces[row.trace];
  for (const wave of row.waves) {
    if (trace.end[wave] < state.from || trace.start[wave] > state.to) continue;
    drawWave(context, state, trace, wave, y);
    if (state.lit.size && state.litTrace === row.trace) drawLit(context, state, trace, wave, y);
    if (state.selected && state.selected.trace === row.trace && waveOf(trace, state.selected.event) === wave) {
      drawSelected(context, state, trace, state.selected.event, y);
    }
  }
  context.restore();
}

function drawWave(context, state, trace, wave, y) {
  const low = trace.first[wave];
  context.globalAlpha = 0.12;
  context.fillStyle = state.ink;
  const begin = toX(state, trace.start[wave]);
  context.fillRect(begin, y + 1, Math.max(toX(state, trace.end[wave]) - begin, 1), 1);
  context.globalAlpha = 1;
  const [from, to] = eventsInSight(state, trace, wave);
  if (isExact(state, from, to)) drawEvents(context, state, trace, from, to, low, y);
}

function eventsInSight(state, trace, wave) {
  const [low, high] = [trace.first[wave], trace.first[wave + 1]];
  const from = Math.max(upperBound(trace.issue, state.from, low, high) - 1, low);
  return [from, Math.min(upperBound(trace.issue, state.to, low, high) + 1, high)];
}

function isExact(state, from, to) {
  return LEAST_PIXELS * (to - from) <= state.width - GUTTER;
}

function drawEvents(context, state, trace, from, to, low, y) {
  const perCycle = (state.width - GUTTER) / (state.to - state.from);
  for (let event = Math.max(from - 64, low); event < to; event++) {
    const x = toX(state, trace.issue[event]);
    const color = state.units[trace.units[trace.instruction[event]]].color;
    context.fillStyle = color;
    context.globalAlpha = 0.5;
    if (perCycle * trace.latency[event] > 2) context.fillRect(x, y + 13, perCycle * trace.latency[event], 2);
    if (event < from) continue;
    const stalled = perCycle * trace.stall[event];
    if (stalled > 0) {
      context.globalAlpha = 0.4;
      context.fillStyle = state.reasons[trace.reason[event]].color;
      context.fillRect(x - stalled, y + 5, stalled, 4);
    }
    context.globalAlpha = 1;
    context.fillStyle = color;
    const wide = Math.max(perCycle * trace.length[event] - (perCycle * trace.length[event] > 4 ? 1 : 0), 1);
    context.fillRect(x, y + 2, wide, 10);
    if (wide > 60) {
      context.fillStyle = "#000000";
      context.textAlign = "left";
      context.fillText(trace.mnemonics[trace.instruction[event]], x + 3, y + 7, wide - 6);
    }
  }
  context.globalAlpha = 1;
}

// The waves of a row that have too many events in sight for each to be drawn.
function paintRow(pixels, state, row, y) {
  for (const wave of row.waves ?? []) {
    const trace = state.traces[row.trace];
    if (trace.end[wave] < state.from || trace.start[wave] > state.to) continue;
    if (!isExact(state, ...eventsInSight(state, trace, wave))) paintSteps(pixels, state, trace, wave, y);
  }
}

// Bins of at least two pixels: work from above, stalls below it, as high as their part of the bin.
function paintSteps(pixels, state, trace, wave, y) {
  const perCycle = pixels.width / (state.to - state.from);
  const levels = waveLevels(trace, wave, state.units.length, state.reasons.length);
  const level = levels.find((one) => one.width * perCycle >= 2 * pixels.scale) ?? levels[levels.length - 1];
  const work = state.units.map(({ color }) => pixelOf(color));
  const stalls = state.reasons.map(({ color }) => pixelOf(color, 0.4));
  const begin = trace.start[wave];
  const from = Math.max(Math.round((begin - state.from) * perCycle), 0);
  const to = Math.min(Math.round((trace.end[wave] - state.from) * perCycle), pixels.width);
  for (let band = 0; band < 4; band++) {
    const row = new Uint32Array(pixels.width);
    for (let x = from; x < to; x++) {
      const bin = Math.min(Math.max(Math.floor((state.from + (x + 0.5) / perCycle - begin) / level.width), 0), level.count - 1);
      const [unit, reason, quarters] = [level.unit[bin], level.reason[bin], level.quarters[bin]];
      if (band < quarters) row[x] = work[unit];
      else if (reason) row[x] = stalls[reason];
    }
    const [top, end] = [y + 2 + 3 * band, y + 5 + 3 * band].map((line) => Math.min(line, AXIS + state.rowsHeight));
    paintBand(pixels, row, top, end);
  }
}

// A tick above each execution of what is chosen in the code, once a pixel.
function drawLit(context, state, trace, wave, y) {
  context.fillStyle = state.ink;
  let drawn = -2;
  const high = trace.first[wave + 1];
  for (let event = upperBound(trace.issue, state.from, trace.first[wave], high); event < high; event++) {
    if (trace.issue[event] > state.to) break;
    if (!state.lit.has(trace.instruction[event])) continue;
    const x = Math.round(toX(state, trace.issue[event]));
    if (x > drawn + 1) context.fillRect(x, y, 2, 3);
    drawn = x;
  }
}

function drawSelected(context, state, trace, event, y) {
  const x = toX(state, trace.issue[event]);
  const wide = Math.max(toX(state, trace.issue[event] + trace.length[event]) - x, 3);
  context.strokeStyle = state.ink;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y + 1, wide + 2, ROW - 3);
}

function shareInSight(state, measure) {
  return measure ? measure(state.from, state.to - state.from, 1)[0] : 0;
}

function heightsOf(pixels, state, measure, most) {
  const found = measure(state.from, (state.to - state.from) / pixels.width, pixels.width);
  return found.map((share) => most * share);
}

function paintUnit(pixels, state, unit, y) {
  const last = state.traces.length - 1;
  const base = y + UNIT - 2;
  const measured = state.measures[last].units[unit];
  if (measured) paintColumns(pixels, base, null, heightsOf(pixels, state, measured, UNIT - 5), pixelOf(state.units[unit].color));
  const before = last ? state.measures[0].units[unit] : null;
  if (!before) return;
  const line = heightsOf(pixels, state, before, UNIT - 5);
  paintColumns(pixels, base, line, line.map((tall) => tall + 1), pixelOf(state.ink));
}

function drawUnit(context, state, unit, y) {
  const shares = state.measures.map((one) => `${(100 * shareInSight(state, one.units[unit])).toFixed(0)}%`);
  drawName(context, state, `${state.units[unit].name} ${shares.join(" → ")}`, y, UNIT);
  context.fillStyle = state.ink;
  context.globalAlpha = 0.25;
  context.fillRect(GUTTER, y + UNIT - 2, state.width - GUTTER, 1);
  context.globalAlpha = 1;
}

// Of the waves that there are, how many stall and why, one reason upon the other; of the last trace.
function paintStalls(pixels, state, y) {
  let below = null;
  state.measures[state.traces.length - 1].stalls.forEach((measure, reason) => {
    if (!measure) return;
    const above = heightsOf(pixels, state, measure, STALLS - 4);
    if (below) above.forEach((tall, x) => (above[x] = tall + below[x]));
    paintColumns(pixels, y + STALLS - 2, below, above, pixelOf(state.reasons[reason].color));
    below = above;
  });
}

function drawStalls(context, state, y) {
  const { stalls } = state.measures[state.traces.length - 1];
  const total = stalls.reduce((sum, measure) => sum + shareInSight(state, measure), 0);
  drawName(context, state, `stalled waves ${(100 * total).toFixed(0)}%`, y, STALLS);
}
