// Pages work without this script; with it they are live, and have keys.
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { watchLists } from "./lists.js";
import { watchPreviews } from "./preview.js";
import { nameZone, setServerTime, showTimes } from "./times.js";

function begin() {
  const { dataset } = document.documentElement;
  if ("begun" in dataset) return;
  dataset.begun = "";
  setServerTime(dataset.now);
  showTimes();
  nameZone();
  setInterval(showTimes, 5000);
  listen();
  watchLists();
  watchPreviews();
  follow();
}

// Only after the first paint, which nothing of this is needed for. What nobody sees is not painted.
new PerformanceObserver(begin).observe({ type: "paint", buffered: true });
setTimeout(begin, document.hidden ? 0 : 1000);
