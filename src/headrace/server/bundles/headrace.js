// For pages of bundles: `import { ask, read } from "./headrace.js"`. Asks the server, with a key
// where it wants one; the page has a dialog `sign-in` with an input `key`.

export const $ = (id) => document.getElementById(id);

const KEY = "headrace-key";

export async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(KEY);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  // The browser says by itself what a form is.
  if (typeof options.body === "string") headers.set("Content-Type", "application/json");
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401 && (await signIn())) return ask(path, options);
  if (!answer.ok) throw new Error(await problem(answer));
  return answer;
}

export async function read(path) {
  return (await ask(path)).json();
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

export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export const many = (count, what) => `${count.toLocaleString()} ${what}${count === 1 ? "" : "s"}`;

export function action(text, label, act) {
  const button = make("button", { type: "button", className: "plain", onclick: act }, text);
  button.setAttribute("aria-label", label);
  return button;
}
