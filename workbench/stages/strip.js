// The stages of a compilation as a timeline, and under it what the chosen one changed.
//
// meta: {stages: [{number, name, phase, purpose, state, time, added, removed, summary, isEmpty, ops, error}],
//   origins: [text]}
// fetchStage(index): a promise of {rows}, as `diffView` has them.

const LEAST_MS = 0.05; // bars of time are logarithmic: one stage often takes a hundred times as long as another

function mountStrip(root, meta, fetchStage) {
  root.classList.add("fly-view", "fly-strip");
  const stages = meta.stages;
  const strip = element("div", { className: "strip", tabIndex: 0, role: "listbox", ariaLabel: "Stages", ariaOrientation: "horizontal" });
  const heading = element("div", { className: "heading", ariaLive: "polite" });
  const optionId = `fly-stage-${++lineLists}`;
  const most = Math.max(1, ...stages.map((stage) => Math.max(stage.added, stage.removed)));
  const longest = Math.max(1, ...stages.map((stage) => stage.time ?? 0));
  let chosen = Math.max(0, stages.findIndex((stage) => !stage.isEmpty));

  strip.append(...stages.map(column));
  strip.setAttribute("aria-activedescendant", optionId);
  strip.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for arrow keys
  strip.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(Array.prototype.indexOf.call(strip.children, option));
  });
  strip.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: stages.length - 1 }[event.key];
    if (to === undefined) return;
    choose(Math.min(Math.max(to, 0), stages.length - 1));
    event.preventDefault();
    event.stopPropagation();
  });
  root.append(strip, heading);
  const diff = diffView(root, "What the stage changed", meta.origins);
  choose(chosen);

  function column(stage) {
    const bar = (className, ...heights) =>
      element("span", { className }, ...heights.map(([name, height]) => element("i", { className: name, style: `height:${height * 100}%` })));
    const lines = (count) => (count ? Math.max(0.08, Math.log1p(count) / Math.log1p(most)) : 0);
    const time = stage.time === null ? "" : stage.time < 100 ? stage.time.toFixed(1) : Math.round(stage.time);
    const height = stage.time ? Math.max(0.06, Math.log1p(stage.time / LEAST_MS) / Math.log1p(longest / LEAST_MS)) : 0;
    const what = stage.summary || stage.state;
    const made = element(
      "div",
      { role: "option", ariaSelected: "false", title: `${stage.name}: ${stage.purpose}\n${time && `${time} ms, `}${what}` },
      bar("bar", ["time", height]),
      element("span", { textContent: time || "·" }),
      element("span", { className: "number", textContent: stage.number }),
      bar("bar changes", ["added", lines(stage.added)], ["removed", lines(stage.removed)]),
      element("span", { textContent: stage.added || stage.removed ? `+${stage.added}` : stage.state === "done" ? "=" : "·" }),
      element("span", { textContent: stage.added || stage.removed ? `−${stage.removed}` : "\u00a0" }),
    );
    made.ariaLabel = `${stage.number} ${stage.name}, ${time ? `${time} milliseconds, ` : ""}${what}`;
    made.classList.toggle("failed", stage.state === "failed");
    return made;
  }

  async function choose(index) {
    chosen = index;
    const stage = stages[index];
    Array.prototype.forEach.call(strip.children, (option, i) => {
      option.ariaSelected = String(i === index);
      option.removeAttribute("id");
    });
    strip.children[index].id = optionId;
    const time = stage.time === null ? "" : `, ${stage.time.toFixed(2)} ms`;
    const ops = stage.ops && `, ${stage.ops} operations`;
    heading.replaceChildren(
      element("strong", { textContent: `${stage.number} ${stage.name}` }),
      ` (phase ${stage.phase}): ${stage.purpose}; ${stage.summary || stage.state}${ops}${time}`,
    );
    if (stage.isEmpty) {
      diff.say(stage.error || (stage.state === "done" ? "This stage changed nothing." : `This stage has not run (${stage.state}).`));
      return;
    }
    const content = await fetchStage(index);
    if (chosen === index) diff.show(content.rows); // if no other stage was chosen meanwhile
  }
}
