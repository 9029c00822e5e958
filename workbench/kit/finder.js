// Marks a text in another part of a view, and goes from one place to the next.
function render({ model, el }) {
  const status = document.createElement("span");
  status.setAttribute("role", "status");
  const button = (sign, label, step) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: sign, ariaLabel: label, title: label });
    made.addEventListener("click", () => go(at + step));
    return made;
  };
  let found = [];
  let at = 0;
  el.classList.add("fly-view", "fly-finder");
  el.append(button("↑", "Previous place", -1), button("↓", "Next place", 1), status);

  const part = () => document.querySelector(`.${model.get("target")}`);
  const observer = new MutationObserver(() => mark());

  function clear(root) {
    for (const old of root.querySelectorAll("mark.fly-found")) {
      const parent = old.parentNode;
      old.replaceWith(...old.childNodes);
      parent.normalize();
    }
  }

  function wrap(root, text) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (let node of nodes) {
      for (let place = node.data.indexOf(text); place >= 0; place = node.data.indexOf(text)) {
        const inside = node.splitText(place);
        node = inside.splitText(text.length);
        const mark = document.createElement("mark");
        mark.className = "fly-found";
        inside.replaceWith(mark);
        mark.append(inside);
        found.push(mark);
      }
    }
  }

  function mark() {
    const text = model.get("text").trim();
    const root = part();
    observer.disconnect();
    found = [];
    if (root) {
      clear(root);
      if (text) wrap(root, text);
      observer.observe(root, { childList: true, subtree: true, characterData: true });
    }
    el.hidden = !text;
    go(0);
  }

  function go(to) {
    at = found.length ? (to + found.length) % found.length : 0;
    status.textContent = found.length ? `${at + 1} of ${found.length} in the lines below` : "not in the lines below";
    found.forEach((one, i) => one.classList.toggle("fly-current", i === at));
    if (found.length) found[at].scrollIntoView({ block: "center", inline: "nearest" });
  }

  model.on("change:text", mark);
  mark();
  return () => observer.disconnect();
}
export default { initialize: keepHearing, render };
