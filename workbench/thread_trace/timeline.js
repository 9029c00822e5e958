// The timeline of one trace, or of two over each other, with their code: what is chosen in one is shown in the other.
//
// meta: {units: [{name, color, isOfSimd, isMeasured}], reasons: [{name, color}], sources: [{name, lines: [HTML]}],
//   traces: [{name, cycles, zero, clock, counts, rows: [{name, waves} or {head}], waveNames, units: [of instructions],
//             mnemonics, texts, code: [HTML], places: [[source, line] or null]}]}
// buffer: the columns of the traces, see `decodeTraces`.

const LEAST_CYCLES = 8; // in sight

function mountTimeline(root, meta, buffer) {
  const traces = decodeTraces(meta, buffer);
  const cycles = Math.max(1, ...traces.map((trace) => trace.cycles));
  const rows = traces.flatMap((trace, number) =>
    trace.rows.map((row) => ({ ...row, trace: number, head: row.head && `${traces.length > 1 ? `${trace.name}: ` : ""}${row.head}` })),
  );
  const measures = traces.map((trace) => measureTrace(trace, meta));
  const shownUnits = meta.units.map((_, unit) => unit).filter((unit) => measures.some((one) => one.units[unit]));
  const state = {
    ...{ traces, rows, measures, shownUnits, units: meta.units, reasons: meta.reasons, selected: null, lit: new Set() },
    ...{ from: 0, to: cycles, scroll: 0, width: 0, height: 0, litTrace: 0, ink: "#000000" },
    zero: traces.length > 1 ? 0 : traces[0].zero,
    rowsHeight: Math.min(rows.length * ROW, MOST_ROW_PIXELS),
  };
  state.height = AXIS + state.rowsHeight + shownUnits.length * UNIT + STALLS;

  let isDue = false; // a frame has been asked for

  root.classList.add("fly-view", "fly-timeline");
  const canvas = element("canvas", { tabIndex: 0, role: "application", className: "waves" });
  const scroller = element("div", { className: "scroller", tabIndex: -1 }, element("div", {}));
  const tip = element("div", { className: "tip", hidden: true });
  const axis = element("div", { className: "status axis" });
  const status = element("div", { className: "status chosen", ariaLive: "polite" });
  const context = canvas.getContext("2d");
  canvas.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for the keys
  canvas.style.height = `${state.height}px`;
  scroller.style.cssText = `top:${AXIS}px;height:${state.rowsHeight}px`;
  scroller.firstChild.style.height = `${rows.length * ROW}px`;
  scroller.hidden = rows.length * ROW <= state.rowsHeight;
  scroller.addEventListener("scroll", () => {
    state.scroll = scroller.scrollTop;
    invalidate();
  });
  const sourceOf = element("select", { ariaLabel: "Source file" });
  const codeOf = element("select", { ariaLabel: "Machine code of" });
  meta.sources.forEach((source, index) => sourceOf.append(element("option", { value: index, textContent: source.name })));
  traces.forEach((trace, index) => codeOf.append(element("option", { value: index, textContent: trace.name })));
  const sourceLines = lineList("Source lines", chooseSource);
  const codeLines = lineList("Machine code", chooseCode);
  const pane = (name, select, list) => ({ name, root: element("div", { className: "pane" }, select, list.root) });
  const code = [...(meta.sources.length ? [pane("Source", sourceOf, sourceLines)] : []), pane("Machine code", codeOf, codeLines)];
  const codeTools = element("div", { className: "tools" });
  const panes = paneRow(code, codeTools, 0);
  codeTools.append(...lineTools([sourceLines.root, codeLines.root], root).slice(1), fullWindowButton(() => root)); // no origins here
  sourceOf.addEventListener("change", showSource);
  codeOf.addEventListener("change", showCode);
  root.append(buttons(), element("div", { className: "picture" }, canvas, scroller, tip), axis, legend(), status, codeTools, panes);
  status.textContent =
    "Choose an instruction: click it, or give the timeline the focus. Arrow keys: the next instruction, another wave. " +
    "+ and -, or the wheel: zoom. A and D, or dragging: earlier and later. N: the next execution. 0: the whole trace.";
  showSource();
  showCode();
  listen();
  new ResizeObserver(resize).observe(canvas);
  new MutationObserver(invalidate).observe(document.body, { attributes: true }); // JupyterLab's theme
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", invalidate);
  resize();

  function buttons() {
    const bar = element("div", { className: "status", role: "toolbar", ariaLabel: "Timeline" });
    const actions = {
      "Zoom in": () => zoom(0.5),
      "Zoom out": () => zoom(2),
      Earlier: () => pan(-0.25),
      Later: () => pan(0.25),
      "Whole trace": () => look(0, cycles),
      "Selected instruction": () => lookAtSelected(),
    };
    for (const [name, act] of Object.entries(actions)) {
      const button = element("button", { type: "button", textContent: name });
      button.addEventListener("click", act);
      bar.append(button);
    }
    return bar;
  }

  function legend() {
    const swatch = ({ name, color }, isPale) =>
      element("span", { className: "entry" }, element("span", { className: isPale ? "swatch pale" : "swatch", style: `background:${color}` }), name);
    const used = new Set(traces.flatMap((trace) => trace.units));
    const seen = new Set(traces.flatMap((trace) => [...new Set(trace.reason)]));
    const units = meta.units.filter((_, unit) => used.has(unit)).map((unit) => swatch(unit, false));
    const reasons = meta.reasons.filter((_, reason) => reason && seen.has(reason)).map((reason) => swatch(reason, true));
    const points = traces.length > 1 ? [element("span", { className: "entry", textContent: `points over the units: ${traces[0].name}` })] : [];
    return element("div", { className: "legend" }, ...units, ...reasons, ...points);
  }

  // The view.

  function invalidate() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(draw);
  }

  function draw() {
    isDue = false;
    if (!state.width) return;
    const started = performance.now();
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(state.width * scale) || canvas.height !== Math.round(state.height * scale)) {
      canvas.width = Math.round(state.width * scale);
      canvas.height = Math.round(state.height * scale);
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    state.ink = getComputedStyle(root).color;
    drawTimeline(context, state);
    const [from, to] = [state.from + state.zero, state.to + state.zero].map(whole);
    const time = traces[0].clock ? `, ${((state.to - state.from) / traces[0].clock).toPrecision(4)} µs` : "";
    axis.textContent = `Cycles ${from} to ${to}${time}${traces.length > 1 ? ", from the first wave of each trace" : ""}`;
    canvas.ariaLabel = `Timeline of ${traces.reduce((sum, trace) => sum + trace.counts.waves, 0)} waves, cycles ${from} to ${to}`;
    Object.assign(canvas.dataset, { from: state.from + state.zero, to: state.to + state.zero, left: GUTTER });
    canvas.dataset.drawMs = (performance.now() - started).toFixed(2);
  }

  function resize() {
    state.width = canvas.clientWidth;
    invalidate();
  }

  function look(from, to) {
    const span = Math.min(Math.max(to - from, LEAST_CYCLES), cycles);
    const middle = (from + to) / 2;
    state.from = Math.min(Math.max(middle - span / 2, 0), Math.max(cycles - span, 0));
    state.to = state.from + span;
    invalidate();
  }

  function zoom(factor, at = selectedCycle() ?? (state.from + state.to) / 2) {
    const span = Math.min(Math.max((state.to - state.from) * factor, LEAST_CYCLES), cycles);
    const part = (at - state.from) / (state.to - state.from);
    look(at - part * span, at + (1 - part) * span);
  }

  function pan(part) {
    const by = part * (state.to - state.from);
    look(state.from + by, state.to + by);
  }

  function selectedCycle() {
    if (!state.selected) return null;
    const cycle = traces[state.selected.trace].issue[state.selected.event];
    return cycle >= state.from && cycle <= state.to ? cycle : null;
  }

  function lookAtSelected() {
    if (!state.selected) return;
    const trace = traces[state.selected.trace];
    const [issue, stall] = [trace.issue[state.selected.event], trace.stall[state.selected.event]];
    const span = Math.max(4 * (stall + trace.length[state.selected.event]), 200);
    look(issue - stall / 2 - span / 2, issue - stall / 2 + span / 2);
  }

  // What is under the mouse.

  function cycleAt(x) {
    return state.from + ((x - GUTTER) / (state.width - GUTTER)) * (state.to - state.from);
  }

  function rowAt(y) {
    const inside = y >= AXIS && y < AXIS + state.rowsHeight;
    return inside ? rows[Math.floor((y - AXIS + state.scroll) / ROW)] : undefined;
  }

  function eventUnder(x, y) {
    const row = rowAt(y);
    if (!row?.waves || x < GUTTER) return null;
    const cycle = cycleAt(x);
    const trace = traces[row.trace];
    const wave = row.waves.find((one) => cycle >= trace.start[one] && cycle <= trace.end[one]);
    if (wave === undefined) return null;
    const event = eventAt(trace, wave, cycle);
    return event < 0 ? null : { trace: row.trace, event };
  }

  function describe({ trace: number, event }) {
    const trace = traces[number];
    const instruction = trace.instruction[event];
    const place = trace.places[instruction];
    const text = [
      trace.texts[instruction],
      `${trace.name}, ${trace.waveNames[waveOf(trace, event)]}`,
      `issue: cycle ${whole(trace.issue[event] + state.zero)}; latency: ${whole(trace.latency[event])} cycles; the wave goes on after ${whole(trace.length[event])}`,
      trace.stall[event]
        ? `stall: ${whole(trace.stall[event])} cycles before, ${trace.stallNames[event] ?? meta.reasons[trace.reason[event]].name}`
        : "no stall before",
      `unit: ${meta.units[trace.units[instruction]].name}`,
    ];
    return place ? [...text, `source: ${meta.sources[place[0]].name}:${trace.lineNumbers[instruction]}`] : text;
  }

  function unitUnder(x, y) {
    const index = Math.floor((y - AXIS - state.rowsHeight) / UNIT);
    const unit = shownUnits[index];
    if (x < GUTTER || y < AXIS + state.rowsHeight) return null;
    const cycle = cycleAt(x);
    const half = (2 * (state.to - state.from)) / (state.width - GUTTER);
    const [from, to] = [cycle - half, cycle + half];
    const where = `cycles ${whole(from + state.zero)} to ${whole(to + state.zero)}`;
    const share = (measure) => (measure ? measure(from, to - from, 1)[0] : 0);
    const percent = (measure) => `${(100 * share(measure)).toFixed(0)}%`;
    if (unit !== undefined) {
      return [`${meta.units[unit].name}, ${where}`, ...measures.map((one, i) => `${traces[i].name}: has work ${percent(one.units[unit])} of the time`)];
    }
    const last = measures[measures.length - 1].stalls;
    const found = last.flatMap((measure, reason) => (share(measure) > 0.005 ? [`${meta.reasons[reason].name}: ${percent(measure)}`] : []));
    return [`stalled waves, ${where}`, ...found];
  }

  function showTip(x, y) {
    const found = eventUnder(x, y);
    const lines = found ? describe(found) : unitUnder(x, y);
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => element("div", { textContent: line })));
    const room = state.width - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(0, Math.min(x + 12, room))}px`;
    tip.style.top = `${y + 16}px`;
  }

  function listen() {
    let dragged = null;
    canvas.addEventListener("pointerdown", (event) => {
      dragged = { x: event.offsetX, from: state.from, to: state.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!dragged) return showTip(event.offsetX, event.offsetY);
      const by = ((dragged.x - event.offsetX) / (state.width - GUTTER)) * (dragged.to - dragged.from);
      dragged.moved ||= Math.abs(dragged.x - event.offsetX) > 3;
      tip.hidden = true;
      if (dragged.moved) look(dragged.from + by, dragged.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = dragged && !dragged.moved ? eventUnder(event.offsetX, event.offsetY) : null;
      dragged = null;
      if (found) select(found, true);
    });
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    canvas.addEventListener("dblclick", lookAtSelected);
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const amount = Math.max(-300, Math.min(300, event.deltaY || event.deltaX));
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(amount / 1000);
        else zoom(2 ** (amount / 200), Math.max(cycleAt(event.offsetX), state.from));
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", onKey);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowRight: () => (event.shiftKey ? pan(0.25) : step(1)),
      ArrowLeft: () => (event.shiftKey ? pan(-0.25) : step(-1)),
      ArrowDown: () => otherWave(1),
      ArrowUp: () => otherWave(-1),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      w: () => zoom(0.5),
      "-": () => zoom(2),
      s: () => zoom(2),
      a: () => pan(-0.25),
      d: () => pan(0.25),
      0: () => look(0, cycles),
      n: () => again(1),
      N: () => again(-1),
      Home: () => ofWave((low) => low),
      End: () => ofWave((_, high) => high - 1),
      Enter: lookAtSelected,
    };
    const act = keys[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  // What is chosen.

  function select(found, isRevealed) {
    state.selected = found;
    const trace = traces[found.trace];
    const instruction = trace.instruction[found.event];
    light(found.trace, [instruction]);
    if (isRevealed) codeLines.move(instruction);
    status.replaceChildren(...describe(found).map((line) => element("div", { textContent: line })));
    bringIntoSight(found);
    invalidate();
  }

  function light(number, instructions) {
    state.lit = new Set(instructions);
    state.litTrace = number;
    const { places } = traces[number];
    if (Number(codeOf.value) !== number) {
      codeOf.value = number;
      showCode();
    }
    codeLines.mark("lit", (line) => state.lit.has(line), true);
    const place = instructions.map((instruction) => places[instruction]).find(Boolean);
    if (place && Number(sourceOf.value) !== place[0]) {
      sourceOf.value = place[0];
      showSource();
    }
    sourceLines.mark("lit", (line) => place !== undefined && line === place[1], true);
    invalidate();
  }

  function bringIntoSight({ trace: number, event }) {
    const cycle = traces[number].issue[event];
    const span = state.to - state.from;
    if (cycle < state.from || cycle > state.to) look(cycle - span / 2, cycle + span / 2);
    const wave = waveOf(traces[number], event);
    const row = rows.findIndex((one) => one.trace === number && one.waves?.includes(wave));
    if (row * ROW < state.scroll) scroller.scrollTop = row * ROW;
    if ((row + 1) * ROW > state.scroll + state.rowsHeight) scroller.scrollTop = (row + 1) * ROW - state.rowsHeight;
  }

  function current() {
    if (state.selected) return state.selected;
    const trace = traces.findIndex((one) => one.counts.events);
    const row = rows.find((one) => one.trace === trace && one.waves);
    return trace < 0 ? null : { trace, event: traces[trace].first[row.waves[0]] };
  }

  function ofWave(choice) {
    const found = current();
    if (!found) return;
    const trace = traces[found.trace];
    const wave = waveOf(trace, found.event);
    const [low, high] = [trace.first[wave], trace.first[wave + 1]];
    select({ trace: found.trace, event: Math.min(Math.max(choice(low, high, found.event), low), high - 1) }, true);
  }

  function step(by) {
    if (state.selected) ofWave((_low, _high, event) => event + by);
    else ofWave((low) => low);
  }

  function again(by) {
    ofWave((low, high, event) => {
      const { instruction } = traces[current().trace];
      for (let other = event + by; other >= low && other < high; other += by) {
        if (instruction[other] === instruction[event]) return other;
      }
      return event;
    });
  }

  function otherWave(by) {
    const found = current();
    if (!found) return;
    const trace = traces[found.trace];
    const wave = waveOf(trace, found.event);
    const cycle = trace.issue[found.event];
    const from = rows.findIndex((row) => row.trace === found.trace && row.waves?.includes(wave));
    for (let index = from + by; index >= 0 && index < rows.length; index += by) {
      const row = rows[index];
      const other = row.waves && traces[row.trace];
      const nearest = row.waves?.find((one) => cycle <= other.end[one]) ?? row.waves?.[row.waves.length - 1];
      const event = nearest === undefined ? -1 : eventAt(other, nearest, cycle);
      if (event >= 0) return select({ trace: row.trace, event }, true);
    }
  }

  function showSource() {
    const source = meta.sources[Number(sourceOf.value)];
    if (!source) return;
    const known = new Set(traces.flatMap((trace) => trace.places.flatMap((place) => (place && place[0] === Number(sourceOf.value) ? [place[1]] : []))));
    sourceLines.fill(source.lines, (line) => known.has(line), 0);
  }

  function showCode() {
    codeLines.fill(traces[Number(codeOf.value)].code, () => true, 0);
  }

  function chooseCode(line) {
    if (line < 0) return;
    codeLines.move(line);
    chooseInstructions(Number(codeOf.value), [line]);
  }

  function chooseSource(line) {
    if (line < 0) return;
    sourceLines.move(line);
    const file = Number(sourceOf.value);
    const comesFrom = (trace) => trace.places.flatMap((place, index) => (place && place[0] === file && place[1] === line ? [index] : []));
    const preferred = [Number(codeOf.value), ...traces.keys()].find((number) => comesFrom(traces[number]).length);
    if (preferred === undefined) {
      status.textContent = "No instruction of the trace comes from that line.";
      return;
    }
    chooseInstructions(preferred, comesFrom(traces[preferred]));
  }

  // Light instructions, and select the execution of one of them that is nearest to what is in sight.
  function chooseInstructions(number, instructions) {
    const trace = traces[number];
    const wanted = new Set(instructions);
    const wave = state.selected?.trace === number ? waveOf(trace, state.selected.event) : -1;
    let found = -1;
    let distance = Infinity;
    trace.instruction.forEach((instruction, event) => {
      if (!wanted.has(instruction)) return;
      const middle = (state.from + state.to) / 2;
      const outside = Math.max(Math.abs(trace.issue[event] - middle) - (state.to - state.from) / 2, 0);
      const far = outside + (wave >= 0 && (event < trace.first[wave] || event >= trace.first[wave + 1]) ? 0.5 : 0);
      if (far < distance) [found, distance] = [event, far];
    });
    if (found >= 0) select({ trace: number, event: found }, false);
    else status.textContent = "No traced wave executed that instruction.";
    light(number, instructions);
  }
}
