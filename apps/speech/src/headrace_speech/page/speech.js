// The page of the bundle. No framework and no build: the browser reads this file as it is.
import { draft } from "./dialogue.js";
import { make, $, ask, send, source } from "./server.js";

const PAGE = 20;
const EVERY = 1000;
const FINAL = ["completed", "failed", "timeout", "cancelled"];
const WORDS = { scheduled: "waits for a retry", pending: "pending", running: "running", timeout: "took too long" };

let shown = [];
let cursor = null;
let timer = null;
// What was fetched of each job: its turns, and whether they are unfolded.
const turns = new Map();
const opened = new Set();
// What is being listened to: a job, and the number of the turn that sounds or comes next.
let listening = null;
const voice = new Audio();

// -- what is there -------------------------------------------------------------------------------

async function about() {
  try {
    const info = await ask("providers");
    await draft.start(info);
    const limit = `Up to ${info.at_once} dialogues of each user are spoken at the same time.`;
    $("about").textContent = limit;
  } catch (error) {
    $("about").textContent = `The server cannot be asked: ${error.message}`;
  }
}

async function list({ more = false } = {}) {
  const wanted = new URLSearchParams({ limit: String(more ? PAGE : Math.min(200, Math.max(PAGE, shown.length))) });
  if ($("list-status").value) wanted.set("status", $("list-status").value);
  if ($("list-user").value.trim()) wanted.set("user", $("list-user").value.trim());
  if (more && cursor) wanted.set("cursor", cursor);
  try {
    const page = await ask(`jobs?${wanted}`);
    shown = more ? [...shown, ...page.jobs] : page.jobs;
    cursor = page.next;
    await Promise.all(shown.filter(wantsTurns).map(loadTurns));
    show();
  } catch (error) {
    tell(error.message);
  }
  watch();
}

function wantsTurns(job) {
  if (!opened.has(job.job_id) && FINAL.includes(job.status)) return false;
  const known = turns.get(job.job_id);
  return !known || known.some((turn) => !turn.spoken);
}

async function loadTurns(job) {
  try {
    turns.set(job.job_id, (await ask(`jobs/${job.job_id}/turns`)).turns);
  } catch {
    turns.set(job.job_id, []);
  }
}

function watch() {
  clearTimeout(timer);
  const busy = shown.some((job) => !FINAL.includes(job.status));
  if (busy && !document.hidden) timer = setTimeout(list, EVERY);
}

// -- the list ------------------------------------------------------------------------------------

function show() {
  const target = $("jobs");
  const items = new Map([...target.children].map((item) => [item.dataset.id, item]));
  shown.forEach((job, place) => {
    // An item is made anew only if something has changed: what plays or is focused stays.
    const state = JSON.stringify([job, turns.get(job.job_id), opened.has(job.job_id), nowOf(job)]);
    let item = items.get(job.job_id);
    items.delete(job.job_id);
    if (item?.dataset.state !== state) {
      const fresh = itemOf(job, item);
      fresh.dataset.state = state;
      keepFocus(item, () => item?.replaceWith(fresh));
      item = fresh;
    }
    if (target.children[place] !== item) target.insertBefore(item, target.children[place] ?? null);
  });
  items.forEach((item) => item.remove());
  $("empty").hidden = shown.length > 0;
  $("more").hidden = !cursor;
}

function keepFocus(item, change) {
  const label = item?.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  change();
  if (label) document.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
}

function nowOf(job) {
  return listening?.job === job.job_id ? listening.turn : 0;
}

function itemOf(job, before) {
  const name = job.title || "Dialogue";
  const item = make("li", {});
  item.dataset.id = job.job_id;
  const status = make("span", { className: `status ${job.status}` }, `${sign(job.status)} ${WORDS[job.status] ?? job.status}`);
  const tools = make("span", { className: "tools" });
  if (["failed", "timeout", "cancelled"].includes(job.status)) {
    tools.append(tool("Try again", `Try ${name} again`, () => act(`jobs/${job.job_id}/retry`, "POST")));
  }
  tools.append(tool("Delete", `Delete ${name}`, () => remove(job, name)));
  const heading = make("h3", { dir: "auto" }, name);
  item.append(make("div", { className: "head" }, heading, status, tools));
  item.append(make("p", { className: "quiet" }, factsOf(job)));
  if (job.error_message) {
    const told = job.status === "scheduled" ? `Attempt ${job.retry_count + 1}: ` : "";
    item.append(make("p", { className: "quiet bad" }, told + job.error_message));
  }
  if (!FINAL.includes(job.status)) {
    const bar = make("progress", { max: 100, value: job.progress });
    bar.setAttribute("aria-label", `Progress of ${name}`);
    item.append(bar);
  }
  if (job.audio_file_id) item.append(playerOf(job, name, before));
  item.append(turnsOf(job, name));
  return item;
}

function factsOf(job) {
  const facts = [`${job.turns} turn${job.turns === 1 ? "" : "s"}`];
  if (job.seconds != null) facts.push(`${job.seconds.toFixed(1)} s`);
  if (job.message && !FINAL.includes(job.status)) facts.push(job.message);
  if (job.retry_count && job.status === "completed") facts.push(`tried ${job.retry_count + 1} times`);
  facts.push(`spoken by ${job.provider === "local" ? "this server" : job.provider}`, `for ${job.user}`);
  if (job.created_at) facts.push(new Date(job.created_at).toLocaleString());
  return facts.join(" · ");
}

function playerOf(job, name, before) {
  const present = before?.querySelector("audio");
  if (present) return present.closest(".player");
  const player = make("audio", { controls: true, preload: "none" });
  player.setAttribute("aria-label", `Player of ${name}`);
  source(player, `audio/${job.audio_file_id}`);
  player.addEventListener("play", () => stop());
  return make("div", { className: "player" }, player);
}

function turnsOf(job, name) {
  const box = make("details", { open: opened.has(job.job_id) });
  const known = turns.get(job.job_id) ?? [];
  const ready = known.filter((turn) => turn.spoken).length;
  const making = !FINAL.includes(job.status);
  box.append(make("summary", {}, making && known.length ? `${ready} of ${known.length} turns can be heard` : "Turns"));
  box.addEventListener("toggle", () => unfold(job, box.open));
  if (!known.length) {
    box.append(make("p", { className: "quiet" }, turns.has(job.job_id) ? "The turns are no longer stored." : "Loading …"));
    return box;
  }
  const now = nowOf(job);
  const all = now
    ? tool("Stop", `Stop ${name}`, stop)
    : tool(making ? "Listen while it is made" : "Listen turn by turn", `Listen to ${name}`, () => listen(job, 1));
  all.className = "light";
  const items = known.map((turn) => {
    const play = tool(now === turn.turn ? "■" : "▶", `Play turn ${turn.turn} of ${name}`, () => (now === turn.turn ? stop() : listen(job, turn.turn)));
    play.disabled = !turn.spoken;
    const length = turn.seconds == null ? "…" : `${turn.seconds.toFixed(1)} s`;
    return make("li", { className: now === turn.turn ? "now" : "" }, play,
      make("span", { className: "role", dir: "auto" }, turn.role),
      make("span", { className: "text", dir: "auto" }, turn.text),
      make("span", { className: "seconds" }, length));
  });
  box.append(make("ol", { className: "said" }, ...items), all);
  return box;
}

async function unfold(job, open) {
  if (open === opened.has(job.job_id)) return;
  if (open) opened.add(job.job_id);
  else opened.delete(job.job_id);
  if (open && wantsTurns(job)) await loadTurns(job);
  show();
}

function tool(text, label, act) {
  const button = make("button", { type: "button", className: "small", onclick: act }, text);
  button.setAttribute("aria-label", label);
  return button;
}

function sign(status) {
  return { completed: "✓", failed: "✗", timeout: "✗", cancelled: "–" }[status] ?? "…";
}

// -- listening -----------------------------------------------------------------------------------

// One turn after the other; one that is not spoken yet is waited for.
async function listen(job, turn) {
  for (const player of document.querySelectorAll("audio")) player.pause();
  listening = { job: job.job_id, turn };
  show();
  const wanted = listening;
  while (listening === wanted) {
    const known = turns.get(job.job_id) ?? [];
    const next = known[turn - 1];
    if (!next) return stop();
    if (next.spoken) break;
    const current = shown.find((each) => each.job_id === job.job_id);
    if (!current || FINAL.includes(current.status)) return stop();
    await new Promise((resolve) => setTimeout(resolve, EVERY / 4));
  }
  if (listening !== wanted) return;
  await source(voice, `jobs/${job.job_id}/turns/${turn}`);
  voice.onended = () => { if (listening === wanted) listen(job, turn + 1); };
  voice.onerror = () => { if (listening === wanted) stop(); };
  voice.play().catch(() => stop());
}

function stop() {
  voice.pause();
  if (!listening) return;
  listening = null;
  show();
}

// -- changing ------------------------------------------------------------------------------------

function tell(text, bad = true) {
  $("note").textContent = text;
  $("note").classList.toggle("bad", bad);
}

async function act(path, method) {
  try {
    await send(path, method);
  } catch (error) {
    tell(error.message);
  }
  await list();
}

async function remove(job, name) {
  if (!confirm(`Delete ${name}${job.audio_file_id ? " and its audio file" : ""}?`)) return;
  if (listening?.job === job.job_id) stop();
  await act(`jobs/${job.job_id}`, "DELETE");
}

async function speak(event) {
  event.preventDefault();
  tell("Handing in …", false);
  $("speak").disabled = true;
  try {
    const accepted = await send("jobs", "POST", draft.script());
    opened.add(accepted.job_id);
    tell("Handed in. It can be heard below while it is made.", false);
    $("list-status").value = "";
    await list();
  } catch (error) {
    tell(error.message);
  } finally {
    $("speak").disabled = false;
  }
}

$("dialogue").addEventListener("submit", speak);
$("list-status").addEventListener("change", () => { shown = []; list(); });
$("list-user").addEventListener("change", () => { shown = []; list(); });
$("more").addEventListener("click", () => list({ more: true }));
document.addEventListener("visibilitychange", () => { if (!document.hidden) list(); });

await Promise.all([about(), list()]);
