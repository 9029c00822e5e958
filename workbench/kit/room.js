// A view over the whole window: in the browser's top layer, whatever it is inside of. Escape goes back.

// target(): the element to enlarge.
function fullWindowButton(target) {
  const name = "Full window";
  const button = element("button", { type: "button", textContent: name, title: "Escape: back", ariaPressed: "false", className: "full-window" });
  let large = null;
  button.addEventListener("click", () => (large ? leave() : enter()));

  function enter() {
    large = target();
    large.classList.add("fly-full");
    large.popover = "manual";
    large.showPopover();
    large.addEventListener("keydown", onKey);
    settle(true);
  }

  function leave() {
    large.removeEventListener("keydown", onKey);
    large.hidePopover();
    large.popover = null;
    large.classList.remove("fly-full");
    large.scrollIntoView?.({ block: "nearest" });
    large = null;
    settle(false);
  }

  function settle(isLarge) {
    button.ariaPressed = String(isLarge);
    button.focus();
    window.dispatchEvent(new Event("resize")); // pictures fit themselves to their place
  }

  function onKey(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    leave();
  }
  return button;
}
