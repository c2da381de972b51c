// Asking the server, and small things that every part of the page needs.

export const $ = (id) => document.getElementById(id);

export async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem("headrace-key");
  if (key) headers.set("Authorization", `Bearer ${key}`);
  if (options.body) headers.set("Content-Type", "application/json");
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
      if (key) sessionStorage.setItem("headrace-key", key);
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

export function action(text, label, act) {
  const button = make("button", { type: "button", className: "plain", onclick: act }, text);
  button.setAttribute("aria-label", label);
  return button;
}

export const many = (count, what) => `${count.toLocaleString()} ${what}${count === 1 ? "" : "s"}`;
