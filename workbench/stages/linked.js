// Code at two levels beside its source: choosing a line lights everything of the same origin, at every level.
//
// meta: {levels: [{name, language, size}], origins: [text], counts: [[per level]], operations: [{name: count}]}
// onChoose(index): called with the origin of a line that is chosen.
// fetchLevel(index): a promise of {lines: [HTML of each line, escaped], origins: [index or -1], operations: [name or ""]}.

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

let mounted = 0; // panes on this page

function mount(root, meta, fetchLevel, onChoose = () => {}) {
  root.classList.add("fly-linked");
  const names = meta.levels.map((level) => level.name);
  const last = names.length - 1;
  const source = meta.levels.findIndex((level) => level.language === "python");
  const first = meta.levels.findIndex((level) => level.language !== "python");
  const status = element("div", { className: "status", ariaLive: "polite" });
  const found = element("div", { className: "status", ariaLive: "polite" });
  const row = element("div", { className: "panes" });
  let lit = -1;
  let wanted = ""; // the operation that is searched for
  let isSearch = false; // whether the last thing that was asked for is an operation, not an origin

  const panes = [];
  if (source >= 0) panes.push(makePane("Source", source));
  panes.push(makePane("Left", Math.max(first, 0)), makePane("Right", last));

  const search = element("input", { type: "search", placeholder: "for example add" });
  search.addEventListener("input", () => find(search.value.trim()));
  root.append(element("label", {}, "Find operation ", search), found, row, status);
  status.textContent = "Choose a line (click, or arrow keys and Enter) to light everything of the same origin.";

  function makePane(title, initial) {
    const select = element("select", { ariaLabel: `${title} level` });
    names.forEach((name, index) => select.append(element("option", { value: index, textContent: name })));
    const lines = element("div", { className: "lines", tabIndex: 0, role: "listbox", ariaLabel: `${title} lines` });
    const cursorId = `fly-cursor-${++mounted}`;
    lines.setAttribute("aria-activedescendant", cursorId);
    lines.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for arrow keys
    const pane = { select, lines, level: initial, cursor: -1, cursorId, origins: [], operations: [] };
    select.value = initial;
    select.addEventListener("change", () => show(pane, Number(select.value)));
    lines.addEventListener("click", (event) => {
      const line = event.target.closest("[role=option]");
      if (line) choose(pane, Array.prototype.indexOf.call(lines.children, line));
    });
    lines.addEventListener("keydown", (event) => onKey(pane, event));
    row.append(element("div", { className: "pane" }, element("label", {}, `${title} `, select), lines));
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
    pane.cursor = -1;
    pane.lines.innerHTML = content.lines
      .map((line, i) => `<div role="option" aria-selected="false"${content.origins[i] < 0 ? "" : ' class="has"'}>${line || " "}</div>`)
      .join("");
    paint(pane, !isSearch);
    mark(pane, isSearch);
  }

  function onKey(pane, event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) move(pane, pane.cursor + step);
    else if (event.key === "Home") move(pane, 0);
    else if (event.key === "End") move(pane, pane.origins.length - 1);
    else if (event.key === "Enter" || event.key === " ") choose(pane, pane.cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function move(pane, to) {
    const left = pane.lines.children[pane.cursor];
    left?.classList.remove("cursor");
    left?.removeAttribute("id");
    pane.cursor = Math.min(Math.max(to, 0), pane.origins.length - 1);
    const line = pane.lines.children[pane.cursor];
    if (!line) return;
    line.classList.add("cursor");
    line.id = pane.cursorId; // what a screen reader says while the list has the focus
    reveal(pane.lines, line);
  }

  function choose(pane, index) {
    if (index < 0 || index >= pane.origins.length) return;
    move(pane, index);
    lit = pane.origins[index];
    isSearch = false;
    panes.forEach((other) => paint(other, other !== pane));
    describe();
    if (lit >= 0) onChoose(lit);
  }

  function paint(pane, scroll) {
    let revealed = !scroll;
    Array.prototype.forEach.call(pane.lines.children, (line, index) => {
      const on = lit >= 0 && pane.origins[index] === lit;
      line.classList.toggle("lit", on);
      line.setAttribute("aria-selected", on);
      if (on && !revealed) {
        reveal(pane.lines, line);
        revealed = true;
      }
    });
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
    let revealed = !scroll;
    Array.prototype.forEach.call(pane.lines.children, (line, index) => {
      const on = wanted !== "" && pane.operations[index].includes(wanted);
      line.classList.toggle("found", on);
      if (on && !revealed) {
        reveal(pane.lines, line);
        revealed = true;
      }
    });
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

// Scrolls the list alone; scrollIntoView would move the page too.
function reveal(list, line) {
  const inside = list.getBoundingClientRect();
  const at = line.getBoundingClientRect();
  const bottom = inside.top + list.clientTop + list.clientHeight; // without a scroll bar
  if (at.top < inside.top || at.bottom > bottom) list.scrollTop += at.top - inside.top - list.clientHeight / 3;
}
