// A line in the corner of the page, above whatever is there, for as long as it has a text.

const PLACE = "fly-progress-place"; // one for all kernels that the page shows
const SILENCE_MS = 20_000; // what has not been heard of for so long has ended with its kernel

function place() {
  const there = document.getElementById(PLACE);
  if (there) return there;
  const made = Object.assign(document.createElement("div"), { id: PLACE, className: "fly-view" });
  document.body.append(made);
  return made;
}

function initialize({ model }) {
  keepHearing({ model });
  const line = document.createElement("div");
  const text = document.createElement("span");
  const bar = document.createElement("progress");
  let silence = 0;
  line.append(text, bar);
  model.on("change", show);
  show();

  function show() {
    clearTimeout(silence);
    const share = model.get("share");
    text.textContent = bar.ariaLabel = model.get("text");
    bar.hidden = share < 0;
    bar.value = Math.max(share, 0);
    if (!model.get("text")) return line.remove();
    if (!line.isConnected) place().append(line);
    silence = setTimeout(() => line.remove(), SILENCE_MS);
  }

  return () => {
    clearTimeout(silence);
    line.remove();
  };
}

export default { initialize };
