// A diff: unified or side by side, from change to change, and as text to copy.
//
// rows: [sign, left number, right number, left HTML or null where it is as the right one, right HTML, origin], or
//   ["…", count] for equal rows that are not in it. origins: the text of each origin.

const CONTEXT = 3; // equal rows that are shown around each change
const LEAST_BESIDE = 1100; // pixels, from which on a diff is shown side by side at first

// Puts a diff into an element. The result: show(rows), and say(text) in place of a diff.
function diffView(root, label, origins) {
  const diff = element("div", { className: "fly-diff", tabIndex: 0, role: "region", ariaLabel: label });
  const place = element("span", { role: "status" });
  let rows = [];
  let opened = new Set(); // the gaps that are shown
  let changes = []; // of each run of changed rows, the elements
  let current = -1;

  diff.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for keys
  const previous = action("Previous change", "Key p", () => go(current - 1));
  const next = action("Next change", "Key n", () => go(current + 1));
  const beside = toggleButton("Side by side", "Before and after beside each other", false, (on) => {
    diff.classList.toggle("beside", on);
    if (rows.length) draw();
  });
  const copy = action("Copy diff", "The changes as text, with their signs", copyDiff);
  const tools = element("div", { className: "tools" }, beside, previous, next, place, element("span", { className: "gap" }), copy);
  tools.append(...lineTools([diff], root).slice(origins.length ? 0 : 1), fullWindowButton(() => root));
  root.append(tools, diff);
  diff.addEventListener("click", (event) => {
    const fold = event.target.closest(".fold");
    if (fold && diff.classList.contains("folded")) fold.classList.toggle("open");
  });
  root.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== "n" && event.key !== "p") return;
    go(event.key === "n" ? current + 1 : current - 1);
    event.preventDefault();
    event.stopPropagation();
  });
  const observer = new ResizeObserver(() => {
    if (!root.clientWidth) return;
    observer.disconnect();
    if (root.clientWidth >= LEAST_BESIDE) beside.click();
  });
  observer.observe(root);
  return { show, say };

  function show(shown) {
    rows = shown;
    opened = new Set();
    diff.style.setProperty("--digits", String(rows.length).length);
    draw();
  }

  function say(text) {
    rows = [];
    draw(text);
  }

  function action(name, title, act) {
    const button = element("button", { type: "button", textContent: name, title });
    button.addEventListener("click", act);
    return button;
  }

  function draw(message) {
    if (message !== undefined) diff.textContent = message;
    else diff.replaceChildren(...parts().flatMap((part) => (part.isGap ? gap(part) : lines(part))));
    changes = [];
    for (const row of diff.querySelectorAll("[data-run]")) (changes[row.dataset.run] ??= []).push(row);
    diff.scrollTop = 0;
    current = -1;
    go(0, false);
  }

  // The rows in parts: runs of changes, with what is around them, and gaps.
  function parts() {
    const near = new Set();
    rows.forEach((row, index) => {
      if (row[0] !== " " && row[0] !== "…") for (let i = index - CONTEXT; i <= index + CONTEXT; i++) near.add(i);
    });
    // A gap takes a line itself.
    for (let i = 1; i <= rows.length; i++) if (near.has(i - 1) && near.has(i + 1)) near.add(i);
    if (near.has(1)) near.add(0);
    const found = [];
    let run = -1;
    let wasChanged = false;
    rows.forEach((row, index) => {
      const isGap = !near.has(index) || row[0] === "…";
      const isChanged = !isGap && row[0] !== " ";
      if (isChanged && !wasChanged) run += 1;
      const last = found.at(-1);
      const key = isGap ? "gap" : isChanged ? `run${run}` : "equal";
      if (last?.key === key) last.rows.push(row);
      else found.push({ key, isGap, run: isChanged ? run : -1, start: index, rows: [row] });
      wasChanged = isChanged;
    });
    return found.map((part) => (part.isGap && opened.has(part.start) ? { ...part, isGap: false } : part));
  }

  function gap(part) {
    const absent = part.rows.filter((row) => row[0] === "…").reduce((sum, row) => sum + row[1], 0);
    const count = absent + part.rows.filter((row) => row[0] !== "…").length;
    const text = `⋯ ${count} equal ${count === 1 ? "line" : "lines"}`;
    if (absent) return [element("div", { className: "gap", textContent: text })];
    const button = element("button", { type: "button", textContent: text, title: "Show them" });
    button.addEventListener("click", () => {
      const top = diff.scrollTop;
      opened.add(part.start);
      draw();
      diff.scrollTop = top;
    });
    return [element("div", { className: "gap" }, button)];
  }

  function lines(part) {
    const isBeside = diff.classList.contains("beside");
    const made = [];
    const add = (...sides) => {
      const row = element("div", { className: "row" }, ...sides);
      if (part.run >= 0) row.dataset.run = part.run;
      made.push(row);
    };
    const cells = (number, origin, sign, html, className) => {
      const n = element("span", { className: "n", textContent: number || "" });
      if (origin >= 0 && number) {
        n.style.setProperty("--hue", hue(origin));
        n.title = origins[origin];
      }
      const side = element("span", { className: `side ${html === null ? "void" : className || "equal"}` }, n);
      side.append(element("span", { className: "sign", textContent: sign }), element("span", { className: "text", innerHTML: html ?? "" }));
      return side;
    };
    if (isBeside) {
      for (const [sign, left, right, before, after, origin] of part.rows) {
        const isEqual = sign === " " || sign === "~";
        const old = sign === " " ? after : before;
        add(cells(left, origin, isEqual ? "" : left ? "−" : "", left ? old : null, isEqual ? "" : "gone"), cells(right, origin, isEqual ? "" : right ? "+" : "", right ? after : null, isEqual ? "" : "came"));
      }
      return made;
    }
    const single = ([sign, left, right, before, after, origin], isOld) => {
      const number = isOld ? left : right;
      if (!number) return;
      const kind = sign === " " || sign === "~" ? "" : isOld ? "gone" : "came";
      add(cells(number, origin, { gone: "−", came: "+" }[kind] ?? sign, isOld ? before : after, kind));
    };
    for (let at = 0; at < part.rows.length; ) {
      // Of rows that were replaced first all that went, then all that came.
      let end = at;
      while (end < part.rows.length && "+-*".includes(part.rows[end][0])) end += 1;
      if (end === at) single(part.rows[at++], false);
      else {
        for (let i = at; i < end; i++) single(part.rows[i], true);
        for (let i = at; i < end; i++) single(part.rows[i], false);
        at = end;
      }
    }
    return made;
  }

  function go(to, scroll = true) {
    changes[current]?.forEach((row) => row.classList.remove("current"));
    const count = changes.length;
    current = count ? (to + count) % count : -1;
    place.textContent = count ? `change ${current + 1} of ${count}` : "no change";
    previous.disabled = next.disabled = count === 0;
    changes[current]?.forEach((row) => row.classList.add("current"));
    if (scroll && count) diff.scrollTop += changes[current][0].getBoundingClientRect().top - diff.getBoundingClientRect().top - 60;
  }

  async function copyDiff() {
    const text = (html) => element("div", { innerHTML: html }).textContent;
    const found = [];
    for (const part of parts()) {
      if (part.isGap) found.push("...");
      else if (part.run < 0) found.push(...part.rows.map((row) => ` ${text(row[4])}`));
      else {
        found.push(...part.rows.filter((row) => row[1] && row[0] !== "~").map((row) => `-${text(row[3])}`));
        found.push(...part.rows.filter((row) => row[2]).map((row) => `${row[0] === "~" ? "~" : "+"}${text(row[4])}`));
      }
    }
    try {
      await navigator.clipboard.writeText(found.join("\n"));
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "The browser does not allow it";
    }
    setTimeout(() => (copy.textContent = "Copy diff"), 1500);
  }
}
