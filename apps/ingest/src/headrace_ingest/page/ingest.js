// The page of the bundle. No framework and no build: the browser reads these files as they are.

import { $, action, ask, make, many, read } from "./headrace.js";

const PAGE = 50;
const EVERY = 1000;
const AT_ONCE = 4;
const FINAL = ["completed", "failed"];

let shown = [];
let cursor = null;
let timer = null;

// -- what is there -------------------------------------------------------------------------------

async function about() {
  try {
    const info = await read("info");
    $("about").textContent = `${many(info.documents, "document")}, ${many(info.chunks, "chunk")}. `
      + `Meaning by ${info.model}; vectors ${info.vectors}.`;
    $("paths").replaceChildren(...info.paths.map((path) => make("option", { value: path })));
  } catch (error) {
    $("about").textContent = `The server cannot be asked: ${error.message}`;
  }
}

async function list({ more = false } = {}) {
  const wanted = new URLSearchParams({ limit: String(more ? PAGE : Math.max(PAGE, shown.length)) });
  if ($("list-path").value) wanted.set("path", $("list-path").value);
  if ($("list-status").value) wanted.set("status", $("list-status").value);
  if (more && cursor) wanted.set("cursor", cursor);
  try {
    const page = await read(`documents?${wanted}`);
    shown = more ? [...shown, ...page.documents] : page.documents;
    cursor = page.next;
    show();
  } catch (error) {
    $("upload-note").textContent = error.message;
  }
  watch();
}

function show() {
  const table = $("documents");
  const rows = new Map([...table.rows].map((row) => [row.dataset.id, row]));
  shown.forEach((each, place) => {
    // A row is made anew only if something has changed: what is focused or selected stays.
    const state = JSON.stringify(each);
    let row = rows.get(each.document_id);
    rows.delete(each.document_id);
    if (row?.dataset.state !== state) {
      const fresh = rowOf(each, state);
      row?.replaceWith(fresh);
      row = fresh;
    }
    if (table.rows[place] !== row) table.insertBefore(row, table.rows[place] ?? null);
  });
  rows.forEach((row) => row.remove());
  $("empty").hidden = shown.length > 0;
  $("more").hidden = !cursor;
}

function rowOf(each, state) {
  const masked = Object.entries(each.personal_data ?? {}).map(
    ([kind, count]) => kind.replaceAll("_", " ") + (count > 1 ? ` × ${count}` : ""));
  const status = make("td", { className: each.status }, sign(each.status), ` ${each.status}`);
  if (!FINAL.includes(each.status)) {
    const bar = make("progress", { max: 100, value: each.progress });
    bar.setAttribute("aria-label", `Progress of ${each.name}`);
    status.append(make("small", {}, bar, ` ${Math.round(each.progress)}% ${each.stage ?? ""}`));
  }
  if (each.error) status.append(make("small", { className: "failed" }, each.error));
  const actions = make("td", {});
  actions.append(action("Delete", `Delete ${each.name}`, () => remove(each)));
  const row = make("tr", {},
    make("td", { className: "name" }, nameOf(each)), make("td", {}, each.path), status,
    make("td", { className: "number" }, each.chunks ? each.chunks.toLocaleString() : ""),
    make("td", { className: "masked" }, masked.join(", ")), actions);
  row.dataset.id = each.document_id;
  row.dataset.state = state;
  return row;
}

function nameOf(each) {
  return action(each.name, `Open the original of ${each.name}`, () => original(each));
}

function sign(status) {
  return { completed: "✓", failed: "✗" }[status] ?? "…";
}

function watch() {
  clearTimeout(timer);
  const busy = shown.some((each) => !FINAL.includes(each.status));
  if (busy && !document.hidden) timer = setTimeout(() => { list(); about(); }, EVERY);
}

async function remove(each) {
  if (!confirm(`Delete ${each.name} and everything that was made of it?`)) return;
  try {
    await ask(`documents/${each.document_id}`, { method: "DELETE" });
  } catch (error) {
    $("upload-note").textContent = error.message;
  }
  await Promise.all([list(), about()]);
}

async function original(each) {
  try {
    const blob = await (await ask(`documents/${each.document_id}/original`)).blob();
    const link = make("a", { href: URL.createObjectURL(blob), download: each.name });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    $("upload-note").textContent = `${each.name}: ${error.message}`;
  }
}

// -- adding --------------------------------------------------------------------------------------

async function add(files) {
  const path = $("path").value || "/";
  const queue = [...files];
  const total = queue.length;
  const refused = [];
  let sent = 0;
  const tell = () => {
    const bad = refused.length ? ` ${refused.length} refused: ${refused.join("; ")}` : "";
    $("upload-note").textContent = total ? `${sent} of ${total} handed in.${bad}` : "There were no files in that.";
  };
  tell();
  const send = async () => {
    for (let file = queue.shift(); file; file = queue.shift()) {
      const form = new FormData();
      form.append("path", path);
      form.append("files", file, file.name);
      try {
        await ask("documents", { method: "POST", body: form });
        sent += 1;
      } catch (error) {
        refused.push(`${visible(file.name)}: ${error.message}`);
      }
      tell();
      watch();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  await Promise.all([list(), about()]);
}

// Marks that turn the direction of writing would turn the rest of the note as well.
function visible(name) {
  const code = (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, code);
}

async function dropped(items) {
  // Entries have to be taken before the first await: the list is emptied after the event.
  const entries = [];
  const found = [];
  for (const item of items) {
    const entry = item.webkitGetAsEntry?.();
    const file = entry ? null : item.getAsFile();
    if (entry) entries.push(entry);
    else if (file) found.push(file);
  }
  while (entries.length) {
    const entry = entries.shift();
    if (entry.isFile) {
      found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    } else {
      const reader = entry.createReader();
      for (;;) {
        const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!part.length) break;
        entries.push(...part);
      }
    }
  }
  return found.filter((file) => !file.name.startsWith("."));
}

// -- finding -------------------------------------------------------------------------------------

async function search(event) {
  event?.preventDefault();
  const query = $("query").value.trim();
  $("hits").replaceChildren();
  if (!query) return;
  const wanted = new URLSearchParams({ q: query, k: "10" });
  if ($("search-path").value) wanted.set("path", $("search-path").value);
  $("search-note").textContent = "Searching …";
  const began = performance.now();
  try {
    const { hits } = await read(`search?${wanted}`);
    const seconds = ((performance.now() - began) / 1000).toFixed(2);
    $("search-note").textContent = hits.length
      ? `${hits.length} best matches in ${seconds} s`
      : "Nothing was found. Is the folder right, and are the documents completed?";
    $("hits").replaceChildren(...hits.map(hitOf));
  } catch (error) {
    $("search-note").textContent = error.message;
  }
}

function hitOf(hit) {
  const text = make("p", {});
  // The server counts whole characters; an emoji is two of a string here.
  const letters = [...hit.text];
  const part = (start, end) => letters.slice(start, end).join("");
  let at = 0;
  for (const [start, end] of hit.ranges ?? []) {
    text.append(part(at, start), make("mark", {}, part(start, end)));
    at = end;
  }
  text.append(part(at));
  const title = make("strong", {}, nameOf(hit));
  return make("li", {}, title, make("span", { className: "quiet" }, ` ${hit.path} · ${hit.score.toFixed(2)}`), text);
}

// -- what people do ------------------------------------------------------------------------------

$("search").addEventListener("submit", search);
$("upload").addEventListener("submit", (event) => event.preventDefault());
$("files").addEventListener("change", (event) => {
  add(event.target.files).finally(() => { event.target.value = ""; });
});
for (const name of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") dropped(event.dataTransfer.items).then(add);
  });
}
for (const id of ["list-path", "list-status"]) $(id).addEventListener("change", () => { shown = []; list(); });
$("more").addEventListener("click", () => list({ more: true }));
document.addEventListener("visibilitychange", () => { if (!document.hidden) list(); });

await Promise.all([about(), list()]);
