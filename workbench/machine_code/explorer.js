// A kernel's machine code: help for the instruction under the pointer or the cursor, registers in use as bars, where one
// register is in use, the bytes of instructions, and the blocks as a graph. Content: see `content.py`.

const COLORS = ["0,119,182", "213,94,0", "0,158,115"]; // of the bars
const MOST_INSTRUCTION_COLUMNS = 60;

function mountIsa(root, data) {
  root.classList.add("fly-view", "fly-isa");
  const { lines } = data;
  const byInstruction = [];
  lines.forEach((line, row) => {
    if (line.instruction !== undefined) byInstruction[line.instruction] = row;
  });
  const heads = [];
  lines.forEach((line, row) => {
    if (line.block !== undefined) heads[line.block] = row;
  });
  let cursor = -1;
  let hovered = -1;

  const field = element("input", { type: "search", placeholder: "for example v[2:3], s4", ariaLabel: "Registers" });
  const encoded = element("input", { type: "checkbox" });
  const status = element("div", { className: "head", ariaLive: "polite" });
  const help = element("div", { className: "help" });
  const list = lineList(`Machine code of ${data.name}`, choose, (row) => ((cursor = row), show(row)));
  const views = element("div", { className: "views" }, list.root);
  const options = element("div", { className: "options" }, element("label", {}, "Registers ", field));
  if (lines.some((line) => line.encoding)) options.append(element("label", {}, encoded, " Encoding"));
  root.append(options, status, views, help);
  const instructionColumns = Math.min(Math.max(0, ...lines.map((line) => line.length ?? 0)) + 2, MOST_INSTRUCTION_COLUMNS);
  list.root.classList.add("wrapped");
  list.fill(lines.map(lineHtml), () => true);
  if (data.blocks > 1) views.append(graph());
  describe([]);
  show(-1);

  list.root.addEventListener("mousemove", (event) => hover(rowOf(event.target)));
  list.root.addEventListener("mouseleave", () => hover(-1));
  list.root.addEventListener("click", (event) => {
    if (event.target.classList.contains("type")) pick(event.target.textContent);
  });
  list.root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || !lines[cursor]) return;
    const names = `${lines[cursor].writes} ${lines[cursor].reads}`.split(" ").filter((name, i, all) => name && all.indexOf(name) === i);
    if (names.length) pick(names[(names.indexOf(field.value) + step + names.length) % names.length]);
    event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener("input", mark);
  encoded.addEventListener("change", () => list.root.classList.toggle("encoded", encoded.checked));

  function lineHtml(line) {
    if (line.instruction === undefined) return `<span class="comment">${line.html}</span>`;
    const bars = line.counts.map((count, i) => {
      const part = Math.round((100 * count) / data.scale[i]);
      return `<span class="bar" style="background:linear-gradient(90deg,rgba(${COLORS[i]},0.35) ${part}%,transparent ${part}%)">${count}</span>`;
    });
    const underWay = line.underWay.map((count) => String(count || "").padStart(3)).join("");
    const room = " ".repeat(Math.max(instructionColumns - line.length, 2));
    return (
      `<span class="${line.over ? "over" : ""}">${bars.join(" ")}</span> <span class="live"> </span> <span class="underway">${underWay.padEnd(underWay && underWay.length + 1)}</span>` +
      `<span class="encoding">${line.encoding.padEnd(26)}</span>${line.html}${room}<span class="remarks">${line.remarks}</span>`
    );
  }

  const rowOf = (target) => Array.prototype.indexOf.call(list.root.children, target.closest("[role=option]"));

  function choose(row) {
    list.move(row);
    list.mark("lit", (other) => other === row, false);
  }

  function hover(row) {
    if (row === hovered) return;
    hovered = row;
    show(row >= 0 && lines[row].instruction !== undefined ? row : cursor);
  }

  function show(row) {
    const line = lines[row];
    root.querySelectorAll(".block.here").forEach((block) => block.classList.remove("here"));
    if (!line) {
      help.textContent = "Rest the pointer on an instruction, or go to it with the arrow keys, to read what it does.";
      return;
    }
    const block = heads.findLastIndex((head) => head <= row);
    root.querySelector(`.block[data-block="${block}"]`)?.classList.add("here");
    if (line.instruction === undefined) return;
    const uses = [line.writes && `writes ${line.writes}`, line.reads && `reads ${line.reads}`].filter(Boolean).join("; ");
    help.innerHTML = data.helps[line.help]; // escaped where it was made
    if (uses) help.append(element("div", { textContent: `here: ${uses}` }));
    if (line.encoding) help.append(element("div", { textContent: `encoding: ${line.encoding}` }));
  }

  function pick(text) {
    field.value = text;
    mark();
  }

  // "v[2:3], s4, vcc": the registers one by one.
  function registers(text) {
    const found = [];
    for (const [name, file, first, last] of text.matchAll(/\b(?:([sva])\[(\d+)(?::(\d+))?\]|[sva]\d+\b|vcc(?:_lo|_hi)?\b)/g)) {
      if (name === "vcc") found.push("vcc_lo", "vcc_hi");
      else if (file) for (let i = Number(first); i <= Number(last ?? first); i++) found.push(`${file}${i}`);
      else found.push(name);
    }
    return found;
  }

  function mark() {
    const wanted = new Set(registers(field.value));
    const live = new Set();
    for (const name of wanted) for (const [first, last] of data.ranges[name] ?? []) for (let i = first; i <= last; i++) live.add(i);
    const has = (text) => wanted.size > 0 && registers(text).some((name) => wanted.has(name));
    let [written, read] = [0, 0];
    lines.forEach((line, row) => {
      if (line.instruction === undefined) return;
      const [writes, reads] = [has(line.writes), has(line.reads)];
      written += writes;
      read += reads;
      const option = list.root.children[row];
      option.classList.toggle("inuse", live.has(line.instruction));
      option.classList.toggle("uses", writes || reads);
      option.querySelector(".live").textContent = (reads ? "r" : "") + (writes ? "w" : "") || (live.has(line.instruction) ? "│" : " ");
      option.querySelectorAll(".type").forEach((name) => name.classList.toggle("chosen", has(name.textContent)));
    });
    describe([...wanted], live.size, written, read);
  }

  function describe(wanted, live, written, read) {
    const columns = `Bars: registers in use, ${data.files.map((file, i) => `${file} of ${data.scale[i]}`).join(", ")}.`;
    const underWay = data.counters.length ? ` Numbers: memory operations under way, ${data.counters.join(", ")}.` : "";
    const hint = "Click a register, or press ← → on a line, to see where it is in use.";
    status.textContent = !wanted.length
      ? `${columns}${underWay} ${hint}`
      : `${field.value}: in use at ${live} of ${byInstruction.length} instructions (│), written by ${written} (w), read by ${read} (r).`;
  }

  function graph() {
    const place = element("div", { className: "graph" });
    place.innerHTML = data.graph; // made of escaped parts
    const go = (event) => {
      const block = event.target.closest(".block");
      if (!block) return;
      choose(heads[block.dataset.block] + 1);
    };
    place.addEventListener("click", go);
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      go(event);
      event.preventDefault();
      event.stopPropagation();
    });
    if (data.cut) place.append(element("div", { textContent: `${data.cut} more blocks` }));
    return place;
  }
}
