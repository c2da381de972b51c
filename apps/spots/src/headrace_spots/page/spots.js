// The page of the bundle. No framework and no build: the browser reads these files as they are.

import { $, action, ask, make, many, read } from "./headrace.js";
import { aspectBar, ratingPlot, sentimentPlot, starsPlot } from "./plots.js";

const PAGE = 30;
const EVERY = 1000;
const STAGES = ["queued", "crawling", "crawled", "parsing", "parsed", "analyzing", "embedding", "completed"];
const FINAL = ["completed", "failed"];

const stars = (rating) => (rating === null || rating === undefined ? "no rating" : `${rating.toFixed(2)} of 5`);

let shown = [];
let cursor = null;
let open = null;
let timer = null;

// -- shops ---------------------------------------------------------------------------------------

async function list({ more = false } = {}) {
  const wanted = new URLSearchParams({ limit: String(more ? PAGE : Math.max(PAGE, shown.length)) });
  if (more && cursor) wanted.set("cursor", cursor);
  try {
    const page = await read(`stores?${wanted}`);
    shown = more ? [...shown, ...page.stores] : page.stores;
    cursor = page.next;
    showShops();
    if (open === null && shown.length) await choose(shown[0].store_id);
    else if (open !== null) await detail();
  } catch (error) {
    $("about").textContent = `The server cannot be asked: ${error.message}`;
  }
  watch();
}

function showShops() {
  const reviews = shown.reduce((sum, each) => sum + each.reviews, 0);
  $("about").textContent = `${many(shown.length, "shop")}${cursor ? " and more" : ""}, ${many(reviews, "review")}.`;
  const cards = new Map([...$("shops").children].map((card) => [card.dataset.id, card]));
  shown.forEach((each, place) => {
    // A card is made anew only if something has changed: what is focused stays.
    const state = JSON.stringify([each, each.store_id === open]);
    let card = cards.get(each.store_id);
    cards.delete(each.store_id);
    if (card?.dataset.state !== state) {
      const focused = card?.contains(document.activeElement);
      const fresh = cardOf(each, state);
      card?.replaceWith(fresh);
      card = fresh;
      if (focused) card.querySelector("button")?.focus();
    }
    if ($("shops").children[place] !== card) $("shops").insertBefore(card, $("shops").children[place] ?? null);
  });
  cards.forEach((card) => card.remove());
  $("empty").hidden = shown.length > 0;
  $("more").hidden = !cursor;
  const options = shown.map((each) => make("option", { value: each.store_id }, each.name ?? each.url));
  const chosen = $("search-shop").value;
  $("search-shop").replaceChildren(make("option", { value: "" }, "all"), ...options);
  $("search-shop").value = shown.some((each) => each.store_id === chosen) ? chosen : "";
}

function cardOf(each, state) {
  const name = each.name ?? each.url;
  const card = make("li", { className: each.store_id === open ? "card open" : "card" },
    make("strong", {}, action(name, `Show ${name}`, () => choose(each.store_id, true))),
    make("span", { className: "quiet" }, each.host));
  if (each.run_id) card.append(make("span", {}, `${stars(each.rating)} · ${many(each.reviews, "review")}`));
  const run = each.last;
  if (run && !FINAL.includes(run.status)) {
    const bar = make("progress", { max: 100, value: run.progress });
    bar.setAttribute("aria-label", `Progress of ${name}`);
    card.append(make("span", { className: "busy" }, bar, ` ${run.status}`));
  } else if (run?.status === "failed") {
    card.append(make("span", { className: "failed" }, `✗ ${run.error ?? "failed"}`));
  }
  card.dataset.id = each.store_id;
  card.dataset.state = state;
  return card;
}

async function choose(storeId, go = false) {
  open = storeId;
  showShops();
  await detail();
  if (go) {
    $("detail").scrollIntoView({ block: "start" });
    $("detail-title").focus({ preventScroll: true });
  }
}

let drawn = "";

async function detail() {
  let shop;
  try {
    shop = await read(`stores/${open}`);
  } catch (error) {
    $("detail-error").textContent = error.message;
    return;
  }
  const state = JSON.stringify(shop);
  $("detail").hidden = false;
  if (state === drawn) return;
  drawn = state;
  $("detail-title").textContent = shop.name ?? shop.url;
  const parts = [shop.url, shop.address, stars(shop.rating), many(shop.reviews, "review")];
  if (shop.schedule) parts.push(`again ${shop.schedule.words}`);
  $("detail-about").textContent = parts.filter(Boolean).join(" · ");
  showStages(shop.last);
  showFound(shop);
  showActions(shop);
}

function showStages(run) {
  const at = run ? STAGES.indexOf(run.status) : -1;
  const failed = run?.status === "failed";
  $("stages").replaceChildren(...STAGES.map((name, place) => {
    const item = make("li", {}, name);
    if (at > place || run?.status === "completed") item.className = "past";
    if (at === place && !FINAL.includes(run.status)) {
      item.className = "now";
      item.setAttribute("aria-current", "step");
      item.append(` ${run.progress}%`);
    }
    return item;
  }));
  $("stages").classList.toggle("broken", failed);
  $("detail-error").textContent = failed ? `The last run failed: ${run.error}` : "";
}

function showFound(shop) {
  const found = shop.analysis;
  $("found").hidden = !found;
  if (!found) return;
  $("summary").replaceChildren(...found.summary.map((text) => make("blockquote", {}, text)));
  $("rating").replaceChildren(found.months.length ? ratingPlot(found.months, $("rating")) : "No ratings with a day.");
  $("sentiment").replaceChildren(sentimentPlot(found.sentiment, $("sentiment")));
  $("stars").replaceChildren(starsPlot(found.stars, $("stars")));
  const most = Math.max(...found.aspects.map((each) => each.mentions), 1);
  $("aspects").replaceChildren(...found.aspects.slice(0, 10).map((each) => {
    const examples = each.examples.slice(0, 3).map((text) => make("li", {}, text));
    const head = make("summary", {}, make("b", {}, each.name), aspectBar(each, most),
      make("span", { className: "quiet" }, `${each.mentions}: ${each.positive} good, ${each.negative} bad`));
    return make("li", {}, make("details", {}, head, make("ul", { className: "examples" }, ...examples)));
  }));
}

function showActions(shop) {
  const parts = [action("Analyse again", `Analyse ${shop.name ?? shop.url} again`, () => add(shop.url))];
  if (shop.run_id) {
    parts.push(action("Open the report", `Open the report of ${shop.name ?? shop.url}`, () => report(shop.run_id)));
  }
  parts.push(shop.schedule
    ? action("Stop the weekly run", "Stop analysing this shop again", () => change("DELETE", `stores/${shop.store_id}/schedule`))
    : action("Again every week", "Analyse this shop every Monday", () => change("PUT", `stores/${shop.store_id}/schedule`, { cron: "0 6 * * 1" })));
  parts.push(action("Remove", `Remove ${shop.name ?? shop.url}`, () => remove(shop)));
  $("actions").replaceChildren(...parts);
}

async function report(runId) {
  try {
    const content = await (await ask(`jobs/${runId}/report`)).blob();
    const link = make("a", { href: URL.createObjectURL(content), download: `report-${runId}.html` });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    $("detail-error").textContent = error.message;
  }
}

async function change(method, path, body) {
  try {
    await ask(path, { method, body: body && JSON.stringify(body) });
    await detail();
  } catch (error) {
    $("detail-error").textContent = error.message;
  }
}

async function remove(shop) {
  if (!confirm(`Remove ${shop.name ?? shop.url} and everything that was found about it?`)) return;
  await change("DELETE", `stores/${shop.store_id}`);
  open = null;
  $("detail").hidden = true;
  await list();
}

async function add(url) {
  try {
    const accepted = await (await ask("jobs", { method: "POST", body: JSON.stringify({ url }) })).json();
    $("add-note").textContent = "Handed in.";
    $("url").value = "";
    open = accepted.store_id;
  } catch (error) {
    $("add-note").textContent = error.message;
  }
  await list();
}

function watch() {
  clearTimeout(timer);
  const busy = shown.some((each) => each.last && !FINAL.includes(each.last.status));
  if (busy && !document.hidden) timer = setTimeout(list, EVERY);
}

// -- reviews -------------------------------------------------------------------------------------

async function search(event) {
  event.preventDefault();
  const query = $("query").value.trim();
  $("hits").replaceChildren();
  if (!query) return;
  const wanted = new URLSearchParams({ q: query, k: "10" });
  if ($("search-shop").value) wanted.set("store", $("search-shop").value);
  $("search-note").textContent = "Searching …";
  try {
    const { hits } = await read(`search?${wanted}`);
    $("search-note").textContent = hits.length ? `${hits.length} best reviews` : "Nothing was found.";
    $("hits").replaceChildren(...hits.map(hitOf));
  } catch (error) {
    $("search-note").textContent = error.message;
  }
}

function hitOf(hit) {
  const text = make("p", {});
  const at = hit.text.indexOf(hit.sentence);
  if (at < 0) text.append(hit.text);
  else text.append(hit.text.slice(0, at), make("mark", {}, hit.sentence), hit.text.slice(at + hit.sentence.length));
  const parts = [hit.shop, hit.day, hit.rating === null ? null : stars(hit.rating)].filter(Boolean);
  return make("li", {}, make("span", { className: hit.label }, hit.label), make("span", { className: "quiet" }, ` ${parts.join(" · ")}`), text);
}

$("add").addEventListener("submit", (event) => { event.preventDefault(); add($("url").value); });
$("search").addEventListener("submit", search);
$("more").addEventListener("click", () => list({ more: true }));
document.addEventListener("visibilitychange", () => { if (!document.hidden) list(); });

await list();
