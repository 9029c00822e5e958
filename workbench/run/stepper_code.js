// The panes of the stepper: which waves stand at a line, breakpoints, and the current line. See `stepper_code.py`.

function mountCode(root, model) {
  root.classList.add("fly-stepped");
  let lists = [];

  function build() {
    root.replaceChildren();
    lists = model.get("panes").map((pane) => {
      const list = lineList(pane.name, (row) => {
        list.move(row);
        if (pane.stops[row]) model.send({ pane: pane.name, row });
      });
      list.fill(
        pane.lines.map((line, row) => `<span class="gutter"></span><span class="number">${pane.numbers[row]}</span>${line}`),
        (row) => pane.stops[row],
        0,
      );
      root.append(element("div", {}, element("div", { textContent: pane.name }), list.root));
      return list;
    });
    show();
  }

  function show() {
    model.get("at").forEach((at, index) => {
      const list = lists[index];
      if (!list) return;
      list.mark("lit", (row) => row === at.current, true);
      Array.prototype.forEach.call(list.root.children, (line, row) => {
        const waves = at.waves[row];
        const stop = at.stops[row];
        if (!waves && !stop && !line.dataset.marked) return;
        line.dataset.marked = waves || stop ? "1" : "";
        const gutter = line.querySelector(".gutter");
        gutter.replaceChildren(element("span", { className: "stop", textContent: stop ?? " " }), waves ? `▶${waves}` : "");
        gutter.title = [stop && "breakpoint", waves && `waves ${waves}`].filter(Boolean).join("; ");
      });
    });
  }

  model.on("change:panes", build);
  model.on("change:at", show);
  build();
}
