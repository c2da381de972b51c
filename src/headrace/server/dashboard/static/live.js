// The stream: parts of this page that have changed. Closed while nobody sees the page.
import { morph, parse } from "./morph.js";
import { setServerTime, showTimes } from "./times.js";
import { withoutJumps } from "./lists.js";

let source = null;
let paused = false;
let late = 0;
let again = 0;
let known = document.body.dataset.state ?? "";

function say(state, words) {
  const place = document.getElementById("stream-state");
  place.dataset.state = state;
  if (place.textContent !== words) place.textContent = words;
}

function open() {
  clearTimeout(again);
  if (source || document.hidden || paused) return;
  const { root, view } = document.body.dataset;
  source = new EventSource(`${root}/stream?${new URLSearchParams({ view, state: known })}`);
  source.addEventListener("hello", (event) => hello(event));
  source.addEventListener("parts", (event) => {
    known = event.lastEventId;
    apply(JSON.parse(event.data));
  });
  source.addEventListener("leave", () => location.reload());
  source.addEventListener("error", lost);
}

function hello(event) {
  clearTimeout(late);
  late = 0;
  const { token, now } = JSON.parse(event.data);
  setServerTime(now);
  showTimes();
  for (const each of document.querySelectorAll("input[name=token]")) each.value = token;
  say("live", "Live");
}

function close() {
  clearTimeout(late);
  clearTimeout(again);
  late = 0;
  source?.close();
  source = null;
}

function lost() {
  if (!late) late = setTimeout(() => say("lost", "Reconnecting…"), 500);
  // A browser gives up on some answers; we do not.
  if (source?.readyState !== EventSource.CLOSED) return;
  source.close();
  source = null;
  again = setTimeout(ask, 1000);
}

async function ask() {
  // An answer of 401 has no event: it means that the session is over.
  try {
    const { root, view } = document.body.dataset;
    const response = await fetch(`${root}/session/state`);
    if (response.status === 401) return location.reload();
    if (view === undefined) return undefined;
  } catch {
    // The server is away: try again.
  }
  return open();
}

function apply(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const old = document.getElementById(id);
    // This page was an error, and now it is itself again.
    if (!old) return location.reload();
    const fresh = parse(html).firstElementChild;
    if (!fresh || fresh.id !== id) continue;
    morph(old, withoutJumps(old, fresh));
    showTimes(old);
  }
  return undefined;
}

export function pause() {
  if (document.body.dataset.view === undefined) return;
  paused = !paused;
  document.getElementById("pause-switch").textContent = paused ? "Go on" : "Pause";
  if (paused) {
    close();
    say("paused", "Paused");
  } else {
    say("live", "Live");
    open();
  }
}

export function follow() {
  if (document.body.dataset.view === undefined) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // A page that is kept for "back" must not hold a stream.
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
