// The traces of a timeline as typed arrays, and what drawing needs of them. Cycles count from a trace's first one.

// meta.traces[i].counts: {events, waves}; the buffer has their columns one after the other, each at a multiple of 8.
function decodeTraces(meta, buffer) {
  let at = 0;
  const take = (Kind, count) => {
    const column = new Kind(buffer, at, count);
    at += Math.ceil(column.byteLength / 8) * 8;
    return column;
  };
  return meta.traces.map((about) => {
    const { events, waves } = about.counts;
    return {
      ...about,
      issue: take(Float64Array, events),
      length: take(Uint32Array, events), // until the wave tries the next instruction
      latency: take(Uint32Array, events),
      stall: take(Uint32Array, events),
      instruction: take(Uint32Array, events),
      reason: take(Uint8Array, events),
      start: take(Float64Array, waves),
      end: take(Float64Array, waves),
      first: take(Uint32Array, waves + 1), // event of each wave, and the number of all
      simd: take(Uint32Array, waves),
      cu: take(Uint32Array, waves),
      levels: [],
    };
  });
}

// The number of values in [low, high) that are at most `value`, plus low; the values ascend.
function upperBound(values, value, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function waveOf(trace, event) {
  return upperBound(trace.first, event) - 1;
}

// The event of a wave that a cycle belongs to: the instruction that is issued, or that the wave stalls before.
function eventAt(trace, wave, cycle) {
  const [low, high] = [trace.first[wave], trace.first[wave + 1]];
  if (low === high) return -1;
  const event = upperBound(trace.issue, cycle, low, high) - 1;
  const isStalling = event + 1 < high && cycle >= trace.issue[event + 1] - trace.stall[event + 1];
  return Math.max(isStalling ? event + 1 : event, low);
}

const LEVEL_BINS = 1 << 14; // at most
const BINS_PER_EVENT = 4;

// A wave in coarser and coarser steps: what it does most in each bin, and how many quarters of it are work.
function waveLevels(trace, wave, units, reasons) {
  if (trace.levels[wave]) return trace.levels[wave];
  const begin = trace.start[wave];
  const duration = Math.max(trace.end[wave] - begin, 1);
  const most = Math.min(LEVEL_BINS, BINS_PER_EVENT * (trace.first[wave + 1] - trace.first[wave]));
  let width = 2 ** Math.max(0, Math.ceil(Math.log2(duration / Math.max(most, 1))));
  let count = Math.ceil(duration / width);
  const kinds = units + reasons;
  const sums = new Float32Array(count * kinds);
  const add = (from, to, kind) => {
    for (let bin = Math.max(Math.floor(from / width), 0); bin < count && bin * width < to; bin++) {
      sums[bin * kinds + kind] += Math.min(to, (bin + 1) * width) - Math.max(from, bin * width);
    }
  };
  for (let event = trace.first[wave]; event < trace.first[wave + 1]; event++) {
    const issue = trace.issue[event] - begin;
    add(issue, issue + trace.length[event], trace.units[trace.instruction[event]]);
    if (trace.stall[event]) add(issue - trace.stall[event], issue, units + trace.reason[event]);
  }
  const levels = [];
  for (; ; width *= 2) {
    levels.push(summary(sums, count, width, units, kinds));
    if (count <= 2) break;
    const half = Math.ceil(count / 2);
    for (let bin = 0; bin < half; bin++) {
      for (let kind = 0; kind < kinds; kind++) {
        const second = 2 * bin + 1 < count ? sums[(2 * bin + 1) * kinds + kind] : 0;
        sums[bin * kinds + kind] = sums[2 * bin * kinds + kind] + second;
      }
    }
    count = half;
  }
  trace.levels[wave] = levels;
  return levels;
}

const NOTHING = 255;

function summary(sums, count, width, units, kinds) {
  const unit = new Uint8Array(count).fill(NOTHING);
  const reason = new Uint8Array(count);
  const quarters = new Uint8Array(count);
  for (let bin = 0; bin < count; bin++) {
    let [work, stalled, mostWork, mostStalled] = [0, 0, 0, 0];
    for (let kind = 0; kind < kinds; kind++) {
      const cycles = sums[bin * kinds + kind];
      if (kind < units) {
        work += cycles;
        if (cycles > mostWork) [mostWork, unit[bin]] = [cycles, kind];
      } else {
        stalled += cycles;
        if (cycles > mostStalled) [mostStalled, reason[bin]] = [cycles, kind - units];
      }
    }
    quarters[bin] = work ? Math.max(1, Math.round((4 * work) / (work + stalled))) : 0;
  }
  return { width, count, unit, reason, quarters };
}

// Where the last of ascending values is that is at most `value`; at `from` or behind it, most often close.
function lastUntil(values, value, from) {
  let low = from + 1;
  for (let hop = 1; low < values.length && values[low] <= value; hop *= 2) {
    const far = Math.min(low + hop, values.length);
    if (far === values.length || values[far] > value) return upperBound(values, value, low, far) - 1;
    low = far;
  }
  return low - 1;
}

// How many groups intervals cover, integrated over time; those of a group that overlap count once.
// intervals: of each group a list of [starts, ends] with the starts ascending.
function coverage(groups) {
  const begins = [];
  const ends = [];
  for (const [starts, stops] of groups) {
    let until = -Infinity;
    for (let i = 0; i < starts.length; i++) {
      if (starts[i] > until) {
        if (until > -Infinity) ends.push(until);
        begins.push(starts[i]);
        until = stops[i];
      } else if (stops[i] > until) until = stops[i];
    }
    if (until > -Infinity) ends.push(until);
  }
  const [up, down] = [Float64Array.from(begins).sort(), Float64Array.from(ends).sort()];
  const at = new Float64Array(2 * up.length);
  const sum = new Float64Array(at.length);
  const slope = new Float64Array(at.length);
  for (let i = 0, j = 0, k = 0, level = 0; k < at.length; k++) {
    const isUp = i < up.length && up[i] <= down[j];
    at[k] = isUp ? up[i++] : down[j++];
    sum[k] = k ? sum[k - 1] + level * (at[k] - at[k - 1]) : 0;
    level += isUp ? 1 : -1;
    slope[k] = level;
  }
  // The integral at `count` cycles from `from` on, each `step` after the one before.
  return (from, step, count) => {
    const found = new Float64Array(count);
    let k = upperBound(at, from) - 1;
    for (let i = 0; i < count; i++) {
      const cycle = from + i * step;
      k = lastUntil(at, cycle, k);
      found[i] = k < 0 ? 0 : sum[k] + slope[k] * (cycle - at[k]);
    }
    return found;
  };
}

// Intervals by group, in the order that `coverage` takes. each(visit): calls visit(group, start, end) for every one.
function grouped(each) {
  const groups = new Map();
  each((group, start, end) => {
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push([start, end]);
  });
  return [...groups.values()].map((intervals) => {
    intervals.sort((a, b) => a[0] - b[0]);
    return [intervals.map((interval) => interval[0]), intervals.map((interval) => interval[1])];
  });
}

// Of each unit the share of its groups' cycles in which it has work, and that of stalls by reason, in spans of cycles.
function measureTrace(trace, meta) {
  const wave = new Uint32Array(trace.counts.events);
  for (let w = 0; w < trace.counts.waves; w++) wave.fill(w, trace.first[w], trace.first[w + 1]);
  const over = (each) => coverage(grouped(each));
  const alive = (groups) =>
    over((visit) => trace.start.forEach((start, w) => visit(groups ? groups[w] : w, start, trace.end[w])));
  // The shares in `count` spans of `step` cycles.
  const ratio = (part, whole) => (from, step, count) => {
    const [parts, wholes] = [part(from, step, count + 1), whole(from, step, count + 1)];
    const found = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const cycles = wholes[i + 1] - wholes[i];
      found[i] = cycles > 0 ? Math.min((parts[i + 1] - parts[i]) / cycles, 1) : 0;
    }
    return found;
  };
  const [ofSimd, ofCu, ofWave] = [alive(trace.simd), alive(trace.cu), alive(null)];
  const units = meta.units.map((unit, number) => {
    if (!unit.isMeasured || !trace.units.includes(number)) return null;
    const groups = unit.isOfSimd ? trace.simd : trace.cu;
    const busy = over((visit) =>
      trace.issue.forEach((issue, event) => {
        if (trace.units[trace.instruction[event]] !== number) return;
        visit(groups[wave[event]], issue, issue + trace.latency[event]);
      }),
    );
    return ratio(busy, unit.isOfSimd ? ofSimd : ofCu);
  });
  const seen = new Set(trace.reason);
  const stalls = meta.reasons.map((_, number) => {
    if (!seen.has(number)) return null;
    const stalled = over((visit) =>
      trace.issue.forEach((issue, event) => {
        if (trace.reason[event] === number && trace.stall[event]) visit(wave[event], issue - trace.stall[event], issue);
      }),
    );
    return ratio(stalled, ofWave);
  });
  return { units, stalls };
}
