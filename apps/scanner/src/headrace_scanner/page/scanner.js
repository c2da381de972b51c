// The page of the bundle. No framework and no build: the browser reads these files as they are.

import { $, action, ask, make, many, read } from "./headrace.js";

const BUSY = 1000;
const IDLE = 6000;
const FIELDS = { name: "name", price: "price", sale_status: "sale status" };

let timer = null;
let shown = { platforms: "", changes: "", scans: "" };

async function refresh() {
  clearTimeout(timer);
  let busy = true;
  try {
    const wanted = new URLSearchParams({ limit: "40" });
    if ($("changes-platform").value) wanted.set("platform", $("changes-platform").value);
    const [{ platforms }, { changes }, { scans }] = await Promise.all(
      [read("platforms"), read(`changes?${wanted}`), read("scans?limit=15")]);
    busy = platforms.some((each) => each.running || each.waiting_count);
    about(platforms);
    draw("platforms", platforms, cardOf);
    draw("changes", changes, changeOf);
    draw("scans", scans, scanOf);
    $("no-changes").hidden = changes.length > 0;
    $("no-scans").hidden = scans.length > 0;
    filterOptions(platforms);
  } catch (error) {
    $("about").textContent = `The server cannot be asked: ${error.message}`;
  }
  if (!document.hidden) timer = setTimeout(refresh, busy ? BUSY : IDLE);
}

function about(platforms) {
  const sum = (count) => platforms.reduce((total, each) => total + count(each), 0);
  const running = sum((each) => (each.running ? 1 : 0));
  $("about").textContent = `${many(sum((each) => each.products), "product")}, `
    + `${running} of ${platforms.length} platforms at work, ${many(sum((each) => each.waiting_count), "run")} waiting.`;
}

// A list is drawn anew only if something has changed: what is focused stays.
function draw(id, all, makeOne) {
  const state = JSON.stringify(all);
  if (state === shown[id]) return;
  shown[id] = state;
  const focused = document.activeElement?.getAttribute("aria-label");
  const inside = $(id).contains(document.activeElement);
  $(id).replaceChildren(...all.map(makeOne));
  if (inside && focused) $(id).querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function cardOf(each) {
  const card = make("li", { className: each.running ? "platform busy" : "platform" });
  card.append(make("header", {}, make("h3", {}, each.title),
    make("span", { className: "reader" }, each.reader === "none" ? "jobs" : each.reader)));
  if (each.running) card.append(...runningOf(each));
  else card.append(make("span", { className: "quiet" }, each.waiting_count ? "Waits for a worker." : "Nothing runs."));
  if (each.waiting_count) {
    const waiting = each.waiting.map((run) => make("li", {}, runName(run)));
    if (each.waiting_count > each.waiting.length) waiting.push(make("li", {}, `and ${each.waiting_count - each.waiting.length} more`));
    card.append(make("span", { className: "quiet" }, `${many(each.waiting_count, "run")} waiting:`), make("ol", {}, ...waiting));
  }
  const foot = make("span", { className: "foot" }, make("span", { className: "quiet" }, footOf(each)));
  if (each.products) foot.append(action("Scan", `Scan all products of ${each.title}`, () => scan(each)));
  card.append(foot);
  return card;
}

function runningOf(each) {
  const run = each.running;
  const bar = make("progress", { max: Math.max(run.products, 1), value: run.done });
  bar.setAttribute("aria-label", `Progress on ${each.title}`);
  const what = run.products ? `${run.step ?? "between steps"} · ${run.done} of ${run.products}` : run.step ?? "waits for platforms";
  return [make("span", { className: "runs" }, runName(run)), ...(run.products ? [bar] : []), make("span", { className: "quiet" }, what)];
}

const runName = (run) => [run.name.replace(/-v2$/, "").replace(/^scanner\./, ""), run.set && `set ${run.set}`,
  run.priority ? `priority ${run.priority}` : ""].filter(Boolean).join(" · ");

function footOf(each) {
  if (!each.last) return each.products ? many(each.products, "product") : "";
  const { status, changed, blocked, failed } = each.last;
  const rest = [blocked && `${blocked} blocked`, failed && `${failed} failed`].filter(Boolean);
  return [`Last: ${status}, ${changed} changed`, ...rest].join(", ");
}

function changeOf(each) {
  const arrow = each.field !== "price" ? "" : Number(each.after) > Number(each.before) ? "up" : "down";
  const value = (text) => (each.field === "price" ? Number(text).toLocaleString() : text.replace("_", " "));
  const mark = { up: " ▲", down: " ▼" }[arrow] ?? "";
  return make("li", {}, make("b", {}, each.platform), make("span", { className: "what" }, each.name ?? each.external_id),
    make("span", { className: "quiet" }, FIELDS[each.field] ?? each.field),
    make("span", {}, make("del", {}, value(each.before)), " → ", make("b", { className: arrow }, `${value(each.after)}${mark}`)),
    clock(each.at));
}

function scanOf(each) {
  const counts = [`${each.done} of ${each.products}`, `${each.changed} changed`,
    each.blocked && `${each.blocked} blocked`, each.failed && `${each.failed} failed`, each.error].filter(Boolean);
  const end = each.report
    ? action("Report", `Report of ${each.platform} ${each.scan_id}`, () => report(each.scan_id)) : clock(each.created_at);
  return make("li", {}, make("b", {}, each.platform), make("span", { className: each.status }, each.status),
    make("span", { className: "counts" }, [each.set && `set ${each.set}`, ...counts].filter(Boolean).join(" · ")), end);
}

function clock(at) {
  const moment = new Date(at);
  return make("time", { dateTime: at, title: moment.toLocaleString() }, moment.toLocaleTimeString([], { timeStyle: "short" }));
}

function filterOptions(platforms) {
  if ($("changes-platform").children.length > 1) return;
  $("changes-platform").append(...platforms.filter((each) => each.reader !== "none")
    .map((each) => make("option", { value: each.platform }, each.title)));
}

async function change(note, path, body, said) {
  try {
    await ask(path, { method: "POST", body: JSON.stringify(body) });
    $(note).textContent = said;
  } catch (error) {
    $(note).textContent = error.message;
  }
  await refresh();
}

const scan = (each) => change("note", "scans", { platform: each.platform }, `A run on ${each.title} was asked for.`);

async function report(scanId) {
  try {
    const content = await (await ask(`scans/${scanId}/report`)).blob();
    const link = make("a", { href: URL.createObjectURL(content), download: `scan-${scanId}.html` });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    $("note").textContent = error.message;
  }
}

$("extract").addEventListener("submit", (event) => {
  event.preventDefault();
  change("extract-note", "extractions", { type: "url_extraction", url: $("url").value }, "It was asked for.");
});
$("changes-platform").addEventListener("change", refresh);
$("filter").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

await refresh();
