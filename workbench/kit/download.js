// Buttons that save a picture, as SVG or as PNG at twice its size.
function render({ model, el }) {
  el.classList.add("fly-view", "tools");
  const note = document.createElement("span");
  note.setAttribute("role", "status");
  let kind = "";
  for (const name of ["SVG", "PNG"]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: name, ariaLabel: `Download ${name}`, title: `Download this picture as ${name}` });
    button.addEventListener("click", () => {
      kind = name;
      model.send({ picture: true });
    });
    el.append(button);
  }
  el.append(note);

  let due = 0;
  const observer = new ResizeObserver(() => {
    clearTimeout(due);
    due = setTimeout(tell, 150); // when a window is dragged, once
  });
  function tell() {
    const view = el.closest(".fly-live") ?? el;
    const width = view.clientWidth;
    if (!width || Math.abs(width - model.get("width")) < 16) return;
    if (!view.querySelector(".js-plotly-plot .gtitle")) {
      due = setTimeout(tell, 500); // plotly must have drawn the picture before it can draw it anew
      return;
    }
    model.set("width", width);
    model.save_changes();
  }
  observer.observe(el.closest(".fly-live") ?? el);

  function save(address, ending) {
    const link = document.createElement("a");
    link.href = address;
    link.download = `${model.get("name")}.${ending}`;
    link.click();
  }

  function show(content) {
    if (!("svg" in content)) return;
    const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(content.svg)}`;
    if (kind === "SVG") {
      save(address, "svg");
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * image.width;
      canvas.height = 2 * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      save(canvas.toDataURL("image/png"), "png");
    };
    image.onerror = () => (note.textContent = "The browser cannot draw this picture.");
    image.src = address;
  }
  model.on("msg:custom", show);
  return () => {
    model.off("msg:custom", show);
    observer.disconnect();
    clearTimeout(due);
  };
}
export default { initialize: keepHearing, render };
