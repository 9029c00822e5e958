// Code at two levels beside its source: choosing a line lights everything of the same origin, at every level.
//
// meta: {levels: [{name, language, size}], origins: [text], counts: [[per level]], operations: [{name: count}]}
// onChoose(index): called with the origin of a line that is chosen.
// fetchLevel(index): a promise of {lines: [HTML of each line, escaped], origins: [index or -1], operations: [name or ""],
//   first: the number of the first line, or 0 for none}.

function mount(root, meta, fetchLevel, onChoose = () => {}) {
  root.classList.add("fly-view", "fly-linked");
  const names = meta.levels.map((level) => level.name);
  const last = names.length - 1;
  const source = meta.levels.findIndex((level) => level.language === "python");
  const first = meta.levels.findIndex((level) => level.language !== "python");
  const status = element("div", { className: "status", ariaLive: "polite" });
  const found = element("div", { className: "status", ariaLive: "polite" });
  const tools = element("div", { className: "tools" });
  let lit = -1;
  let wanted = ""; // the operation that is searched for
  let isSearch = false; // whether the last thing that was asked for is an operation, not an origin

  const panes = [];
  if (source >= 0) panes.push(makePane("Source", source));
  panes.push(makePane("Left", Math.max(first, 0)), makePane("Right", last));

  const search = element("input", { type: "search", placeholder: "for example add" });
  search.addEventListener("input", () => find(search.value.trim()));
  const shown = element("span", { className: "tools", role: "group", ariaLabel: "Panes" });
  const row = paneRow(panes, shown, panes.length - 2);
  const gap = element("span", { className: "gap" });
  tools.append(element("label", {}, "Find operation ", search), gap, shown, ...lineTools(panes.map((pane) => pane.list.root), root));
  tools.append(fullWindowButton(() => root));
  root.append(tools, found, row, status);
  status.textContent = "Choose a line (click, or arrow keys and Enter) to light everything of the same origin.";

  function makePane(title, initial) {
    const select = element("select", { ariaLabel: `${title} level` });
    names.forEach((name, index) => select.append(element("option", { value: index, textContent: name })));
    const list = lineList(`${title} lines`, (index) => choose(pane, index));
    const label = element("label", {}, `${title} `, select);
    const pane = { name: title, select, list, level: initial, origins: [], operations: [] };
    pane.root = element("div", { className: "pane" }, label, list.root);
    select.value = initial;
    select.addEventListener("change", () => show(pane, Number(select.value)));
    show(pane, initial);
    return pane;
  }

  async function show(pane, level) {
    pane.level = level;
    pane.select.value = level;
    const content = await fetchLevel(level);
    if (pane.level !== level) return; // another level was chosen meanwhile
    pane.origins = content.origins;
    pane.operations = content.operations;
    pane.list.fill(content.lines, (line) => content.origins[line] >= 0, content.first, (line) => colored(content.origins[line]));
    paint(pane, !isSearch);
    mark(pane, isSearch);
  }

  // The origin, if something was made of it: other lines of the source have no colour.
  function colored(origin) {
    const isUsed = origin >= 0 && meta.counts[origin].some((count, level) => count && meta.levels[level].language !== "python");
    return isUsed ? origin : -1;
  }

  function choose(pane, index) {
    if (index < 0 || index >= pane.origins.length) return;
    pane.list.move(index);
    lit = pane.origins[index];
    isSearch = false;
    panes.forEach((other) => paint(other, other !== pane));
    describe();
    if (lit >= 0) onChoose(lit);
  }

  function paint(pane, scroll) {
    pane.list.mark("lit", (line) => lit >= 0 && pane.origins[line] === lit, scroll);
  }

  function describe() {
    if (lit < 0) {
      status.textContent = "That line has no line of the source.";
      return;
    }
    status.replaceChildren(element("strong", { textContent: meta.origins[lit] }), " at every level: ");
    meta.counts[lit].forEach((count, level) => {
      if (!count || meta.levels[level].language === "python") return;
      const button = element("button", { type: "button", textContent: `${names[level]}: ${count}` });
      button.addEventListener("click", () => {
        isSearch = false;
        show(panes[panes.length - 1], level);
      });
      status.append(button);
    });
  }

  function mark(pane, scroll) {
    pane.list.mark("found", (line) => wanted !== "" && pane.operations[line].includes(wanted), scroll);
  }

  function find(text) {
    wanted = text;
    isSearch = text !== "";
    panes.forEach((pane) => mark(pane, true));
    found.replaceChildren();
    if (!text) return;
    const counts = meta.operations.map((operations) =>
      Object.entries(operations).reduce((sum, [name, count]) => sum + (name.includes(text) ? count : 0), 0),
    );
    if (!counts.some(Boolean)) {
      found.textContent = `No operation is called ${text} at any level.`;
      return;
    }
    let before = 0;
    counts.forEach((count, level) => {
      if (meta.levels[level].language === "python") return;
      const change = count && !before ? `appears (${count})` : before && !count ? `gone (there were ${before})` : count !== before ? `${before} → ${count}` : "";
      if (change) {
        const button = element("button", { type: "button", textContent: `in ${names[level]}: ${change}` });
        button.addEventListener("click", () => {
          isSearch = true;
          show(panes[panes.length - 1], count ? level : level - 1); // where it is gone, the level that still has it
        });
        found.append(button);
      }
      before = count;
    });
  }
}
