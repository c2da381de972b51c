// Asking the server for more than JSON.

import { $, ask as request } from "./headrace.js";
export { $, make, read as ask } from "./headrace.js";

const KEY = "headrace-key";

export async function send(path, method, body) {
  const answer = await request(path, { method, body: body ? JSON.stringify(body) : undefined });
  return answer.status === 204 ? null : answer.json();
}

// Sound is loaded by the browser itself, with ranges. Only with a key of our own it cannot be.
export async function source(player, path) {
  if (!sessionStorage.getItem(KEY)) {
    player.src = path;
    return;
  }
  const load = async () => {
    const before = player.src;
    player.src = URL.createObjectURL(await (await request(path)).blob());
    if (before.startsWith("blob:")) URL.revokeObjectURL(before);
  };
  if (player.controls) {
    // Nobody may ever play it.
    player.src = path;
    player.addEventListener("error", () => load().catch(() => {}), { once: true });
  } else {
    await load();
  }
}

$("not-now").addEventListener("click", () => { $("key").value = ""; $("sign-in").close(); });
