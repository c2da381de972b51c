// A form that shows what would come of it, while somebody types.
import { morph, parse } from "./morph.js";
import { showTimes } from "./times.js";

let typing = 0;
let asked = 0;

async function preview(form) {
  const mine = ++asked;
  // Only these fields go into an address: others may be secret.
  const fields = [...form.querySelectorAll("[data-previewed]")].map(({ name, value }) => [name, value]);
  const response = await fetch(`${form.dataset.preview}?${new URLSearchParams(fields)}`);
  const fresh = parse(await response.text()).querySelector("#preview");
  const old = document.getElementById("preview");
  // Somebody has typed on: there is a newer answer, or there will be.
  if (!fresh || !old || mine !== asked) return;
  morph(old, fresh);
  showTimes(old);
}

export function watchPreviews() {
  addEventListener("input", ({ target }) => {
    const form = target.closest("form[data-preview]");
    if (!form || !target.hasAttribute("data-previewed")) return;
    clearTimeout(typing);
    typing = setTimeout(() => preview(form).catch(() => {}), 250);
  });
}
