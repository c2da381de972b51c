// The dialogue that is being written: who speaks with which voice, and what they say.
import { make, $, ask } from "./server.js";

const SAVED = "headrace-speech-dialogue";
// Shown before all others.
const FIRST = ["ko", "en", "ja", "cmn", "zh"];
const EXAMPLE = {
  title: "",
  roles: [{ role: "Mina", voice: "ko", variant: "f2" }, { role: "Tom", voice: "en-us", variant: "m3" }],
  turns: [
    { role: "Mina", text: "안녕하세요. 만나서 반갑습니다." },
    { role: "Tom", text: "Hello Mina, nice to meet you too." },
  ],
};

let dialogue = load();
let voices = [];
let variants = [];

export const draft = {
  // Fill the form with what the server can do.
  async start(info) {
    $("provider").replaceChildren(...info.providers.map((name) => make("option", { value: name }, name === "local" ? "this server" : name)));
    if (info.providers.includes(dialogue.provider)) $("provider").value = dialogue.provider;
    $("title").value = dialogue.title;
    await loadVoices();
  },
  script() {
    const voiceOf = (each) => (each.variant ? `${each.voice}+${each.variant}` : each.voice);
    return {
      provider: $("provider").value,
      format: $("format").value,
      title: $("title").value.trim(),
      turns: dialogue.turns.map(({ role, text }) => ({ role, text })),
      voice_assignments: Object.fromEntries(dialogue.roles.map((each) => [each.role, voiceOf(each)])),
    };
  },
};

function load() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(SAVED));
    if (saved?.roles && saved?.turns) return saved;
  } catch { /* what was saved cannot be read: begin anew */ }
  return structuredClone(EXAMPLE);
}

function save() {
  dialogue.title = $("title").value;
  dialogue.provider = $("provider").value;
  sessionStorage.setItem(SAVED, JSON.stringify(dialogue));
}

async function loadVoices() {
  try {
    const found = await ask(`voices?${new URLSearchParams({ provider: $("provider").value })}`);
    const rank = (each) => {
      const place = FIRST.indexOf((each.language ?? "").split("-")[0]);
      return place < 0 ? FIRST.length : place;
    };
    voices = found.voices.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
    variants = found.variants ?? [];
  } catch (error) {
    $("note").textContent = error.message;
    $("note").classList.add("bad");
  }
  for (const each of dialogue.roles) {
    if (!voices.some(({ voice }) => voice === each.voice)) each.voice = voices[0]?.voice ?? "";
    if (!variants.some(({ voice }) => voice === each.variant)) each.variant = "";
  }
  show();
}

function show() {
  $("roles").replaceChildren(...dialogue.roles.map(roleOf));
  $("turns").replaceChildren(...dialogue.turns.map(turnOf));
  save();
}

function roleOf(each, place) {
  const name = make("input", { value: each.role, maxLength: 100, required: true, dir: "auto" });
  name.setAttribute("aria-label", `Name of role ${place + 1}`);
  name.addEventListener("change", () => rename(each, name));
  const chosen = choice(voices.map((v) => [v.voice, v.name]), each.voice, `Voice of ${each.role}`, (value) => { each.voice = value; });
  const variant = choice(
    [["", "usual voice"], ...variants.map((v) => [v.voice, variantName(v)])],
    each.variant, `Variant of ${each.role}`, (value) => { each.variant = value; });
  variant.hidden = !variants.length;
  const away = tool("✕", `Remove role ${each.role}`, () => {
    dialogue.roles.splice(place, 1);
    dialogue.turns = dialogue.turns.filter((turn) => turn.role !== each.role);
    if (!dialogue.turns.length) dialogue.turns.push({ role: dialogue.roles[0].role, text: "" });
    show();
  });
  away.disabled = dialogue.roles.length === 1;
  return make("li", {}, name, chosen, variant, away);
}

function variantName({ name, gender }) {
  return gender && !name.toLowerCase().includes(gender) ? `${name} (${gender})` : name;
}

function rename(each, field) {
  const name = field.value.trim();
  if (!name || dialogue.roles.some((other) => other !== each && other.role === name)) {
    field.value = each.role;
    return;
  }
  for (const turn of dialogue.turns) if (turn.role === each.role) turn.role = name;
  each.role = name;
  show();
}

function turnOf(turn, place) {
  const role = choice(dialogue.roles.map((each) => [each.role, each.role]), turn.role, `Role of turn ${place + 1}`, (value) => { turn.role = value; });
  const text = make("textarea", { value: turn.text, rows: 1, required: true, dir: "auto", className: "say", placeholder: "…" });
  text.setAttribute("aria-label", `Text of turn ${place + 1}`);
  text.addEventListener("input", () => { turn.text = text.value; save(); });
  const move = (by) => {
    const [taken] = dialogue.turns.splice(place, 1);
    dialogue.turns.splice(place + by, 0, taken);
    show();
    document.querySelector(`[aria-label="Text of turn ${place + by + 1}"]`)?.focus();
  };
  const up = tool("↑", `Move turn ${place + 1} up`, () => move(-1));
  const down = tool("↓", `Move turn ${place + 1} down`, () => move(1));
  const away = tool("✕", `Remove turn ${place + 1}`, () => { dialogue.turns.splice(place, 1); show(); });
  up.disabled = place === 0;
  down.disabled = place === dialogue.turns.length - 1;
  away.disabled = dialogue.turns.length === 1;
  return make("li", {}, role, text, make("span", { className: "tools" }, up, down, away));
}

function choice(options, value, label, chosen) {
  const select = make("select", {}, ...options.map(([each, name]) => make("option", { value: each }, name)));
  select.value = value;
  select.setAttribute("aria-label", label);
  select.addEventListener("change", () => { chosen(select.value); save(); });
  return select;
}

function tool(text, label, act) {
  const button = make("button", { type: "button", className: "small", onclick: act }, text);
  button.setAttribute("aria-label", label);
  return button;
}

$("add-role").addEventListener("click", () => {
  let number = dialogue.roles.length + 1;
  while (dialogue.roles.some((each) => each.role === `Role ${number}`)) number += 1;
  dialogue.roles.push({ role: `Role ${number}`, voice: voices[0]?.voice ?? "", variant: "" });
  show();
  document.querySelector(`[aria-label="Name of role ${dialogue.roles.length}"]`)?.select();
});
$("add-turn").addEventListener("click", () => {
  // The one whose turn it is: not the one who spoke last.
  const last = dialogue.roles.findIndex((each) => each.role === dialogue.turns.at(-1)?.role);
  const next = dialogue.roles[(last + 1) % dialogue.roles.length];
  dialogue.turns.push({ role: next.role, text: "" });
  show();
  document.querySelector(`[aria-label="Text of turn ${dialogue.turns.length}"]`)?.focus();
});
$("provider").addEventListener("change", loadVoices);
$("title").addEventListener("input", save);
