function render({ model, el }) {
  el.classList.add("fly-view", "fly-room");
  const own = element("button", { type: "button", textContent: "Own tab", title: "This view as a page of its own, in another tab" });
  const note = element("span", { role: "status" });
  let tab = null;
  own.addEventListener("click", () => {
    tab = window.open("", "_blank"); // now: a browser lets nothing open that comes later than the click
    note.textContent = tab ? "" : "The browser does not allow another tab.";
    if (tab) model.send({ page: true });
  });
  const show = (content) => {
    if (!("page" in content) || !tab) return;
    tab.location = URL.createObjectURL(new Blob([content.page], { type: "text/html" }));
    tab = null;
  };
  model.on("msg:custom", show);
  el.append(note, fullWindowButton(() => el.closest(".fly-framed")), own);
  return () => model.off("msg:custom", show);
}
export default { initialize: keepHearing, render };
