// A slider and its number, each with a name for screen readers; the keys are those that a browser gives them.
function render({ model, el }) {
  const name = model.get("description");
  const input = (type, label) => {
    const made = document.createElement("input");
    Object.assign(made, { type, min: model.get("min"), max: model.get("max"), step: model.get("step"), ariaLabel: label });
    made.dataset.lmSuppressShortcuts = "true"; // JupyterLab has its own meaning for arrow keys
    return made;
  };
  const range = input("range", name);
  const number = input("number", `${name}, as a number`);
  const label = document.createElement("span");
  label.textContent = name;
  label.style.minWidth = model.get("label_width");
  el.classList.add("fly-view", "fly-slider");
  el.append(label, range, number);

  const show = () => {
    range.max = number.max = model.get("max");
    range.value = number.value = model.get("value");
  };
  const send = (event) => {
    const wanted = event.target.valueAsNumber;
    const value = Math.min(Math.max(wanted, model.get("min")), model.get("max"));
    if (!Number.isNaN(value)) model.set("value", Math.round(value));
    model.save_changes();
    show();
  };
  range.addEventListener("input", send);
  number.addEventListener("change", send); // when it is complete, not at each digit
  number.addEventListener("keydown", (event) => event.key === "Enter" && send(event));
  model.on("change:value change:max", show);
  show();
  return () => model.off("change:value change:max", show);
}
export default { initialize: keepHearing, render };
