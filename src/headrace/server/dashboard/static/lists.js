// Long lists: rows in chunks, loaded when they come near, taken out when they are far. The first
// chunk is live; its new rows are announced unless the list is at its top and nobody is in it.
import { morph, parse } from "./morph.js";
import { showTimes } from "./times.js";

// Pixels. Who scrolls is soon further down; who does not gets nothing that was not asked for.
const near = () => (scrollY ? 4000 : 2000);
const MOST_ROWS = 400;
// So many rows are added in one frame: all of a chunk take longer than one lasts.
const AT_ONCE = 25;
const frame = () => new Promise((done) => (document.hidden ? setTimeout(done) : requestAnimationFrame(done)));
const held = new Map();
// Selected rows that are not in the page now: names by value.
const away = new Map();
const ticked = (root) => [...root.querySelectorAll("input[data-select]:checked")].map(({ value, name }) => [value, name]);
/** Return what is selected, also in rows that were taken out: names by value. */
export const selected = () => new Map([...away, ...ticked(document)]);

function putAway(chunk) {
  for (const [value, name] of ticked(chunk)) away.set(value, name);
}

function tickAgain(root) {
  for (const box of root.querySelectorAll("input[data-select]")) box.checked ||= away.delete(box.value);
}

const rowsOf = (chunk) => (chunk.dataset.out ? 0 : chunk.rows.length);
const chunksOf = (list) => [...list.querySelectorAll(":scope > tbody[data-chunk]")];

export function watchLists() {
  const look = () => document.querySelectorAll("table[data-list]").forEach(update);
  addEventListener("scroll", () => requestAnimationFrame(look), { passive: true });
  addEventListener("resize", look);
  look();
  comeBack();
}

/** Go back to where somebody was in a list: its rows up to there are loaded, and selected again. */
async function comeBack() {
  const { y = 0, rows = [] } = history.state ?? {};
  for (const [value, name] of rows) away.set(value, name);
  tickAgain(document);
  for (const list of document.querySelectorAll("table[data-list]")) {
    for (let asked = null; ; ) {
      const { next } = chunksOf(list).at(-1).dataset;
      if (list.dataset.loading) await frame();
      else if (!next || next === asked || document.documentElement.scrollHeight >= y + innerHeight) break;
      else await load(list, null, (asked = next));
    }
  }
  if (y) scrollTo(0, y);
  // Writing it down costs as much as a frame: after a scroll only when it has come to rest.
  const note = () => history.replaceState({ y: scrollY, rows: [...selected()] }, "");
  let rest = 0;
  addEventListener("click", note);
  addEventListener("scroll", () => {
    clearTimeout(rest);
    rest = setTimeout(note, 150);
  }, { passive: true });
}

function distance(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return Math.max(top - innerHeight, -bottom, 0);
}

async function update(list) {
  const chunks = chunksOf(list);
  let shown = chunks.reduce((sum, each) => sum + rowsOf(each), 0);
  const far = chunks.slice(1).filter((each) => rowsOf(each) && distance(each) > near());
  far.sort((one, other) => distance(other) - distance(one));
  while (shown > MOST_ROWS && far.length) shown -= takeOut(far.shift());
  for (const each of chunks) if (each.dataset.out && distance(each) < near()) await load(list, each, each.dataset.out);
  const last = chunks.at(-1);
  if (last?.dataset.next && !last.dataset.out && distance(last) < near() && last.getBoundingClientRect().bottom < innerHeight + near()) {
    await load(list, null, last.dataset.next);
  }
}

function takeOut(chunk) {
  const rows = rowsOf(chunk);
  const height = chunk.getBoundingClientRect().height;
  const space = document.createElement("tr");
  const cell = space.appendChild(document.createElement("td"));
  cell.colSpan = 99;
  cell.style.height = `${height}px`;
  space.setAttribute("aria-hidden", "true");
  space.className = "space";
  putAway(chunk);
  chunk.dataset.out = chunk.dataset.from;
  chunk.replaceChildren(space);
  return rows;
}

async function load(list, chunk, from) {
  if (list.dataset.loading) return;
  list.dataset.loading = "true";
  const part = list.closest("[id^=live-]")?.id ?? list.id;
  try {
    const response = await fetch(from, { headers: { "Headrace-Part": part } });
    if (!response.ok) return;
    const found = parse(await response.text()).querySelector(`#${CSS.escape(list.id)} > tbody[data-chunk]`);
    // Meanwhile the list may have begun anew.
    if (!found || (chunk ? !chunk.isConnected : chunksOf(list).at(-1).dataset.next !== from)) return;
    found.dataset.from = from;
    for (const row of [...found.children]) {
      const there = row.id && document.getElementById(row.id);
      if (there && there.parentNode !== chunk) row.remove();
    }
    // In the place of one that was taken out all come at once, or what is below would move.
    const rows = [...found.children];
    const later = chunk ? [] : rows.splice(AT_ONCE);
    found.replaceChildren();
    add(found, rows);
    if (chunk) chunk.replaceWith(found);
    else list.append(found);
    more(list);
    while (later.length && (await frame(), found.isConnected)) add(found, later.splice(0, AT_ONCE));
  } catch {
    // The next scroll tries again; the stream says that the server is away.
  } finally {
    delete list.dataset.loading;
  }
  update(list);
}

function add(chunk, rows) {
  const some = new DocumentFragment();
  some.append(...rows);
  showTimes(some);
  tickAgain(some);
  chunk.append(some);
}

function more(list) {
  // The link for those without scripts has done its duty.
  document.querySelector(`[data-more="${CSS.escape(list.id)}"]`)?.closest("p").toggleAttribute("hidden", true);
}

/** Return the fragment that may be shown now: without new rows, if somebody is in the list. */
export function withoutJumps(old, fresh) {
  const list = old.querySelector("table[data-list]");
  const newer = fresh.querySelector("table[data-list]");
  if (!list || !newer || list.id !== newer.id) return fresh;
  const first = chunksOf(list)[0];
  const firstNew = chunksOf(newer)[0];
  const later = chunksOf(list).slice(1);
  const known = new Set([...first.children].map((row) => row.id));
  const added = [...firstNew.children].filter((row) => row.id && !known.has(row.id));
  if (later.length || (added.length && touched(list))) {
    held.set(list.id, fresh.cloneNode(true));
    // Those that are there are updated where they are; nothing comes or goes.
    const rows = new Map([...firstNew.children].map((row) => [row.id, row]));
    const stay = first.cloneNode(false);
    stay.append(...[...first.children].map((row) => rows.get(row.id) ?? row.cloneNode(true)));
    firstNew.replaceWith(stay);
    newer.append(...later.map((each) => each.cloneNode(true)));
    announce(list, added.length);
  } else {
    held.delete(list.id);
    announce(list, 0);
  }
  return fresh;
}

function touched(list) {
  const top = list.getBoundingClientRect().top;
  return top < 0 || list.matches(":focus-within, :has(tbody:hover)") || selected().size;
}

function announce(list, count) {
  let button = document.getElementById(`${list.id}-new`);
  if (!count) return button?.remove();
  if (!button) {
    button = document.createElement("button");
    button.id = `${list.id}-new`;
    button.type = "button";
    button.className = "announce";
    button.addEventListener("click", () => showNew(list, button));
    (list.closest("[id^=live-]") ?? list).before(button);
  }
  button.textContent = `${count} new — show`;
}

function showNew(list, button) {
  const fresh = held.get(list.id);
  button.remove();
  const old = list.closest("[id^=live-]");
  if (!fresh || !old) return;
  held.delete(list.id);
  for (const chunk of chunksOf(list).slice(1)) {
    putAway(chunk);
    chunk.remove();
  }
  morph(old, fresh);
  tickAgain(old);
  showTimes(old);
  old.scrollIntoView({ block: "nearest" });
  if (old.getBoundingClientRect().top < 0) old.scrollIntoView();
}
