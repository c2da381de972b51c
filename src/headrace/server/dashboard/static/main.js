// Pages work without this script; with it they are live, and have keys.
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { watchLists } from "./lists.js";
import { watchPreviews } from "./preview.js";
import { nameZone, showTimes } from "./times.js";

showTimes();

function begin() {
  nameZone();
  setInterval(showTimes, 5000);
  listen();
  watchLists();
  watchPreviews();
  follow();
}

// Only after the first paint, which nothing of this is needed for.
if (document.hidden) begin();
else requestAnimationFrame(() => setTimeout(begin));
