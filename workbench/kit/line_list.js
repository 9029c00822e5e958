// Lines of text to choose from, with the mouse or with keys; a screen reader says the line that the cursor is on.

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

let lineLists = 0; // on this page

// onChoose(index): called with a line that is chosen. onMove(index): with the line that the cursor has come to.
function lineList(label, onChoose, onMove = () => {}) {
  const root = element("div", { className: "fly-lines", tabIndex: 0, role: "listbox", ariaLabel: label });
  const cursorId = `fly-cursor-${++lineLists}`;
  let cursor = -1;
  root.setAttribute("aria-activedescendant", cursorId);
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for arrow keys
  root.addEventListener("click", (event) => {
    const fold = event.target.closest(".fold");
    const line = event.target.closest("[role=option]");
    if (fold && root.classList.contains("folded")) fold.classList.toggle("open");
    else if (line) onChoose(Array.prototype.indexOf.call(root.children, line));
  });
  root.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) move(cursor + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(root.children.length - 1);
    else if (event.key === "Enter" || event.key === " ") onChoose(cursor);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") unfold(event.key === "ArrowRight");
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // lines: HTML of each. has(index): whether a line leads anywhere. first: the number of the first line; 0 where the
  // lines bring their numbers themselves.
  // origin(index): a number that lines of the same origin share; their colour.
  function fill(lines, has, first = 1, origin = () => -1) {
    cursor = -1;
    root.style.setProperty("--digits", String(first + lines.length).length);
    root.style.counterReset = `line ${first - 1}`;
    root.classList.toggle("numbered", first > 0);
    const attributes = (i) => (has(i) ? ` class="has"${origin(i) < 0 ? "" : ` style="--hue:${hue(origin(i))}"`}` : "");
    root.innerHTML = lines
      .map((line, i) => `<div role="option" aria-selected="false"${attributes(i)}>${line || " "}</div>`)
      .join("");
  }

  // Shows the long types of the line that the cursor is on, or folds them; without any, the list scrolls sideways.
  function unfold(isOpen) {
    const folds = root.classList.contains("folded") ? root.children[cursor]?.querySelectorAll(".fold") : [];
    if (!folds?.length) root.scrollLeft += isOpen ? 60 : -60;
    else folds.forEach((fold) => fold.classList.toggle("open", isOpen));
  }

  function move(to) {
    const left = root.children[cursor];
    left?.classList.remove("cursor");
    left?.removeAttribute("id");
    cursor = Math.min(Math.max(to, 0), root.children.length - 1);
    const line = root.children[cursor];
    if (!line) return;
    line.classList.add("cursor");
    line.id = cursorId; // what a screen reader says while the list has the focus
    reveal(root, line);
    onMove(cursor);
  }

  // Gives some lines a class, which takes it from all others, and scrolls to the first of them.
  function mark(name, isMarked, scroll) {
    let revealed = !scroll;
    Array.prototype.forEach.call(root.children, (line, index) => {
      const on = isMarked(index);
      line.classList.toggle(name, on);
      if (name === "lit") line.setAttribute("aria-selected", on);
      if (on && !revealed) {
        reveal(root, line);
        revealed = true;
      }
    });
  }

  return { root, fill, move, mark };
}

// The colour of a number, in degrees: successive ones are far apart.
function hue(number) {
  return Math.round(number * 137.508) % 360;
}

// Scrolls the list alone; scrollIntoView would move the page too.
function reveal(list, line) {
  const inside = list.getBoundingClientRect();
  const at = line.getBoundingClientRect();
  const bottom = inside.top + list.clientTop + list.clientHeight; // without a scroll bar
  if (at.top < inside.top || at.bottom > bottom) list.scrollTop += at.top - inside.top - list.clientHeight / 3;
}
