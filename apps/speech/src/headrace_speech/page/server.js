// Asking the server, with a key where it wants one; and small things that all parts use.

export const $ = (id) => document.getElementById(id);
const KEY = "headrace-key";

export async function ask(path, options = {}) {
  return (await request(path, options)).json();
}

export async function send(path, method, body) {
  const options = { method };
  if (body) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const answer = await request(path, options);
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

async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(KEY);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401 && (await signIn())) return request(path, options);
  if (!answer.ok) throw new Error(await problem(answer));
  return answer;
}

async function problem(answer) {
  const body = await answer.json().catch(() => null);
  return body?.detail || body?.title || `The server answered ${answer.status}.`;
}

let signingIn = null;

function signIn() {
  signingIn ??= new Promise((resolve) => {
    const dialog = $("sign-in");
    dialog.addEventListener("close", () => {
      const key = $("key").value.trim();
      $("key").value = "";
      signingIn = null;
      if (key) sessionStorage.setItem(KEY, key);
      resolve(Boolean(key));
    }, { once: true });
    dialog.showModal();
  });
  return signingIn;
}

$("not-now").addEventListener("click", () => { $("key").value = ""; $("sign-in").close(); });

export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
