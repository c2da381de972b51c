// Times: rendered in UTC by the server, shown in the zone that was chosen. 24 hours, always.

// Asked for only when it is needed: the first question costs milliseconds.
let here = "";
const zoneHere = () => (here ||= Intl.DateTimeFormat().resolvedOptions().timeZone);
// How far the server's clock is ahead of this one.
let ahead = 0;

export function setServerTime(now) {
  ahead = Date.parse(now) - Date.now();
}

export function zone() {
  return document.documentElement.dataset.zone === "utc" ? "UTC" : zoneHere();
}

// Making one costs more than all else that is done for a row.
const formats = new Map();
function formatIn(name) {
  if (!formats.has(name)) formats.set(name, new Intl.DateTimeFormat("en-CA", {
    timeZone: name, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  }));
  return formats.get(name);
}

function exact(date) {
  const parts = formatIn(zone()).formatToParts(date);
  const of = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  return `${of.year}-${of.month}-${of.day} ${of.hour}:${of.minute}:${of.second} ${of.timeZoneName}`;
}

function relative(date) {
  const seconds = Math.round((Date.now() + ahead - date) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return "just now";
  const [length, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([each]) => size >= each);
  const words = `${Math.floor(size / length)} ${unit}`;
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

/** Show all times below an element; those of the row that has the focus exactly. */
export function showTimes(root = document) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const date = new Date(each.dateTime);
    if (Number.isNaN(date.valueOf())) continue;
    const inWords = each.hasAttribute("data-relative") && !each.closest("[data-row]:focus-within");
    const text = inWords ? relative(date) : exact(date);
    if (each.textContent !== text) each.textContent = text;
    // The exact time is made for those that somebody points at, and stays while they do.
    if (each.title) each.title = exact(date);
    each.dataset.shown = each.getAttribute("datetime");
  }
  // The axes of charts.
  for (const each of root.querySelectorAll("svg [data-time]")) {
    const form = each.dataset.form === "day"
      ? { day: "2-digit", month: "short" }
      : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    if (each.dataset.form === "second") form.second = "2-digit";
    each.textContent = new Date(each.dataset.time).toLocaleString("en-GB", { ...form, timeZone: zone() });
  }
}

export function showExact({ target }) {
  const time = target.closest?.("time[data-relative]:not([title])");
  if (time) time.title = exact(new Date(time.dateTime));
}

export function nameZone() {
  const name = zone();
  document.getElementById("zone-name").textContent = `Times are in ${name.replaceAll("_", " ")}`;
  const button = document.getElementById("zone-switch");
  button.hidden = zoneHere() === "UTC";
  button.textContent = name === "UTC" ? "UTC" : "Local time";
  button.setAttribute("aria-label", `Times in ${name}: switch between local time and UTC`);
}

export function switchZone(remember) {
  const root = document.documentElement;
  root.dataset.zone = root.dataset.zone === "utc" ? "local" : "utc";
  remember("headrace-zone", root.dataset.zone);
  nameZone();
  showTimes();
}
