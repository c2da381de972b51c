// Keys, dialogs, copying, and the switches of the frame.
import { pause } from "./live.js";
import { selected } from "./lists.js";
import { parse } from "./morph.js";
import { showExact, showTimes, switchZone, zone } from "./times.js";

/** Keep a choice, so that the next page is right from its first paint. */
export function remember(name, value) {
  const path = document.body.dataset.root;
  document.cookie = `${name}=${value}; path=${path}; max-age=31536000; samesite=strict`;
}

// -- dialogs

const dialog = document.getElementById("dialog");
let opener = null;

function openDialog(title, content, from = document.activeElement) {
  if (dialog.open) return;
  opener = from;
  document.getElementById("dialog-title").textContent = title;
  document.getElementById("dialog-body").replaceChildren(content);
  dialog.showModal();
}

function confirmIn(details) {
  const form = details.querySelector("form").cloneNode(true);
  // The form itself stays where it is, and has the ids.
  for (const each of form.querySelectorAll("[id]")) each.id += "-asked";
  for (const each of form.querySelectorAll("label[for]")) each.htmlFor += "-asked";
  // Rows that were chosen go with a form that wants them.
  if (details.hasAttribute("data-with-rows")) {
    const chosen = selected();
    form.querySelector(".question").append(` ${chosen.size} selected.`);
    for (const [value, name] of chosen) {
      const field = form.appendChild(document.createElement("input"));
      Object.assign(field, { type: "hidden", name, value });
    }
  }
  // Times that are typed are those of the clock that is shown.
  for (const each of form.querySelectorAll("[data-zone]")) each.value = zone();
  const summary = details.querySelector("summary");
  openDialog(summary.textContent.trim(), form, summary);
}

// -- rows

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.getClientRects().length);
const current = () => document.activeElement?.closest?.("[data-row]");

function step(by) {
  const all = rows();
  const at = all.indexOf(current());
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  if (!next) return;
  next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function press(key) {
  const found = (current() ?? document).querySelector(`[data-key="${key}"]`) ?? document.querySelector(`[data-key="${key}"]`);
  if (found?.tagName === "DETAILS") confirmIn(found);
  else found?.click();
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = dark === "dark" ? "light" : "dark";
  document.querySelector("meta[name=color-scheme]").content = root.dataset.theme;
  remember("headrace-theme", root.dataset.theme);
}

async function help() {
  const response = await fetch(document.getElementById("help-link").href);
  const found = parse(await response.text()).querySelector("#help");
  if (found) openDialog("Help", found);
}

const KEYS = {
  "/": () => document.querySelector("[data-filter]")?.focus(),
  j: () => step(1),
  k: () => step(-1),
  x: () => current()?.querySelector("input[data-select]")?.click(),
  Enter: () => current()?.querySelector("a[href]")?.click(),
  r: () => press("r"),
  c: () => press("c"),
  p: pause,
  t: theme,
  "?": help,
};
let going = 0;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
  const at = event.target;
  if (at.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
    if (event.key === "Escape") at.blur();
    return;
  }
  if (event.key === "Enter" && !at.matches?.("[data-row]")) return;
  let act = KEYS[event.key];
  if (Date.now() < going) act = () => document.querySelector(`[data-go="${CSS.escape(event.key)}"]`)?.click();
  going = event.key === "g" && Date.now() >= going ? Date.now() + 1500 : 0;
  if (!act || going) return;
  event.preventDefault();
  act();
}

// -- copying

async function copy(button) {
  const text = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without https there is no clipboard but the old one.
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1500);
}

function onClick(event) {
  const at = event.target.closest("summary, [data-close], [data-copy], #theme-switch, #zone-switch, #help-link, #pause-switch");
  if (!at) return;
  const details = at.closest("details.confirm");
  if (at.tagName === "SUMMARY" && !details) return;
  event.preventDefault();
  if (at.tagName === "SUMMARY") confirmIn(details);
  else if (at.matches("[data-close]")) dialog.close();
  else if (at.matches("[data-copy]")) copy(at);
  else if (at.id === "theme-switch") theme();
  else if (at.id === "zone-switch") switchZone(remember);
  else if (at.id === "help-link") help();
  else pause();
}

// -- forms

// A form that was sent is not sent again while its answer is on its way. What a network repeats, or
// somebody after a long wait, has the same name, and is done once.
const ANSWER_WITHIN = 10000;
let sent = new WeakMap();

function onSubmit(event) {
  const form = event.target;
  if (form.getAttribute("method") !== "post" || event.defaultPrevented) return;
  const before = sent.get(form);
  if (before?.until > Date.now()) return event.preventDefault();
  const name = before?.name ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  sent.set(form, { name, until: Date.now() + ANSWER_WITHIN });
}

function watchForms() {
  addEventListener("submit", onSubmit);
  addEventListener("formdata", ({ target, formData }) => {
    if (sent.has(target)) formData.set("once", sent.get(target).name);
  });
  // Who comes back to a page may send its forms anew.
  addEventListener("pageshow", () => (sent = new WeakMap()));
}

export function listen() {
  watchForms();
  addEventListener("keydown", onKey);
  addEventListener("click", onClick);
  dialog.addEventListener("close", () => {
    (opener?.isConnected ? opener : document.getElementById("content")).focus();
    opener = null;
  });
  for (const kind of ["focusin", "focusout"]) {
    addEventListener(kind, (event) => {
      const row = event.target.closest?.("[data-row]");
      if (row) setTimeout(() => showTimes(row));
    });
  }
  addEventListener("pointerover", showExact);
}
