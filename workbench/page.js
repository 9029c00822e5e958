
// The exported page: its long parts are in it packed (zlib's format, in base64), and unpacked when they are looked at.

function inflated(part) {
  const packed = Uint8Array.from(atob(document.getElementById(part).textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream);
}

async function unpacked(part) {
  return inflated(part).text();
}

async function fill(place) {
  place.textContent = "…";
  try {
    place.innerHTML = await unpacked(place.dataset.packed); // escaped where it was made
  } catch (error) {
    place.textContent = `This browser cannot unpack this part of the page: ${error}`;
  }
}

document.getElementById("needs-script").remove();

for (const place of document.querySelectorAll("[data-packed]")) {
  const folded = place.closest("details");
  if (folded && !folded.open) folded.addEventListener("toggle", () => fill(place), { once: true });
  else fill(place);
}

for (const place of document.querySelectorAll("[data-linked]")) {
  const part = place.dataset.linked;
  unpacked(part)
    .then((meta) => mount(place, JSON.parse(meta), async (level) => JSON.parse(await unpacked(`${part}-${level}`))))
    .catch((error) => (place.textContent = `This browser cannot unpack this part of the page: ${error}`));
}

for (const place of document.querySelectorAll("[data-stages]")) {
  const part = place.dataset.stages;
  const meta = JSON.parse(document.getElementById(part).textContent);
  mountStrip(place, meta, async (stage) => JSON.parse(await unpacked(`${part}-${stage}`)));
}

for (const place of document.querySelectorAll("[data-isa]")) {
  unpacked(place.dataset.isa)
    .then((content) => mountIsa(place, JSON.parse(content)))
    .catch((error) => (place.textContent = `This browser cannot unpack this part of the page: ${error}`));
}

for (const place of document.querySelectorAll("[data-timeline]")) {
  const part = place.dataset.timeline;
  Promise.all([unpacked(part), inflated(`${part}-data`).arrayBuffer()])
    .then(([meta, data]) => {
      const timeline = document.createElement("div");
      place.replaceChildren(timeline); // the picture stays where there is no script
      mountTimeline(timeline, JSON.parse(meta), data);
    })
    .catch((error) => place.append(`This browser cannot unpack this part of the page: ${error}`));
}
