// Panes side by side, with splitters to drag; where there is little room, two of them at a time.

const NARROW = 1000; // pixels

// panes: [{name, root}]. tools: where the buttons go that show and hide panes. spare: the pane that gives way first.
function paneRow(panes, tools, spare) {
  const row = element("div", { className: "fly-panes" });
  const shares = panes.map(() => 1);
  const splitters = panes.slice(1).map((pane, index) => splitter(index + 1));
  const buttons = panes.map((pane, index) => paneButton(pane.name, index));
  let shown = panes.map((_, index) => index);
  let isNarrow = false;
  panes.forEach((pane, index) => row.append(...(index ? [splitters[index - 1]] : []), pane.root));
  if (panes.length > 1) tools.append(...buttons);
  new ResizeObserver(() => adapt(row.clientWidth)).observe(row);
  arrange();
  return row;

  function paneButton(name, index) {
    const button = element("button", { type: "button", textContent: name, title: `Show or hide: ${name}` });
    button.addEventListener("click", () => toggle(index));
    return button;
  }

  function adapt(width) {
    if (!width || width < NARROW === isNarrow) return;
    isNarrow = width < NARROW;
    shown = panes.map((_, index) => index).filter((index) => !isNarrow || panes.length < 3 || index !== spare);
    arrange();
  }

  function toggle(index) {
    if (!shown.includes(index)) {
      if (isNarrow && shown.length > 1) shown = [shown[0]];
      shown = [...shown, index].sort((one, other) => one - other);
    } else if (shown.length > 1) shown = shown.filter((other) => other !== index);
    arrange();
  }

  function arrange() {
    panes.forEach((pane, index) => {
      pane.root.hidden = !shown.includes(index);
      pane.root.style.flexGrow = shares[index];
      buttons[index].ariaPressed = String(!pane.root.hidden);
      // A splitter goes before every pane that is shown, but the first.
      if (index) splitters[index - 1].hidden = pane.root.hidden || shown[0] === index;
    });
  }

  // The splitter before a pane: it takes room from the one and gives it to the other.
  function splitter(index) {
    const made = element("div", { className: "splitter", tabIndex: 0, role: "separator", ariaOrientation: "vertical" });
    Object.assign(made, { ariaLabel: `Width of ${panes[index].name}`, title: "Drag, or arrow keys; double click: equal" });
    made.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for arrow keys
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      made.setPointerCapture(event.pointerId);
      made.focus();
    });
    made.addEventListener("pointermove", (event) => {
      if (made.hasPointerCapture(event.pointerId)) move(index, event.clientX - made.getBoundingClientRect().left - 5);
    });
    made.addEventListener("dblclick", () => {
      shares.fill(1);
      arrange();
    });
    made.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      move(index, step);
    });
    return made;
  }

  function move(index, pixels) {
    const left = shown[shown.indexOf(index) - 1];
    const [before, after] = [left, index].map((one) => panes[one].root.getBoundingClientRect().width);
    const least = Math.min(80, before, after);
    const width = Math.min(Math.max(before + pixels, least), before + after - least);
    const sum = shares[left] + shares[index];
    shares[left] = (sum * width) / (before + after);
    shares[index] = sum - shares[left];
    arrange();
  }
}

// A button that is on or off. onChange(isOn): called at once, and with each change.
function toggleButton(name, title, isOn, onChange) {
  const button = element("button", { type: "button", textContent: name, title, ariaPressed: String(isOn) });
  button.addEventListener("click", () => {
    button.ariaPressed = String(button.ariaPressed !== "true");
    onChange(button.ariaPressed === "true");
  });
  onChange(isOn);
  return button;
}

// The buttons that change how lines are shown. lists: the elements with the lines. root: what they have their room in;
// where that is little, long lines are wrapped at first.
function lineTools(lists, root) {
  const option = (name, title, className, isOn) =>
    toggleButton(name, title, isOn, (on) => lists.forEach((list) => list.classList.toggle(className, on)));
  const wrap = option("Wrap", "Wrap long lines", "wrapped", false);
  const observer = new ResizeObserver(() => {
    if (!root.clientWidth) return;
    observer.disconnect();
    if (root.clientWidth < NARROW && wrap.ariaPressed === "false") wrap.click();
  });
  observer.observe(root);
  return [
    option("Colours", "A colour for each line of the source, at every level", "colored", true),
    wrap,
    option("Fold types", "Shorten long types to <…>; a click on one shows it, and the arrow right those of a line", "folded", true),
  ];
}
