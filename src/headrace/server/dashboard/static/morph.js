// Changes one tree of elements into another, and keeps what a person has done in it: focus,
// selection, typed text, open details, scroll offsets. Elements with an id stay the same element.

const policy = globalThis.trustedTypes
  ? trustedTypes.createPolicy("headrace", { createHTML: (html) => html })
  : { createHTML: (html) => html };

/** Make elements of HTML that this server has rendered. Nothing in it runs. */
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
}

// Attributes that belong to the person who looks, not to the server.
const OWN = { DETAILS: ["open"], DIALOG: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };
// Set by this script.
const OURS = new Set(["data-shown", "data-touched", "tabindex", "title"]);

/** Make `from` look like `to`. Both are elements of the same kind, `to` is used up. */
export function morph(from, to) {
  const known = new Map();
  for (const each of from.querySelectorAll("[id]")) known.set(each.id, each);
  change(from, to, known);
}

function change(from, to, known) {
  // Elements with data-keep are left alone altogether.
  if (from.isEqualNode(to) || from.hasAttribute("data-keep")) return;
  attributes(from, to);
  // The text of a time was made here, from its attribute.
  if (from.tagName === "TIME" && from.dataset.shown === to.getAttribute("datetime")) return;
  if (from.tagName === "TEXTAREA") {
    if (from.defaultValue !== to.defaultValue) {
      const typed = from.value !== from.defaultValue;
      const value = from.value;
      from.defaultValue = to.defaultValue;
      if (typed) from.value = value;
    }
    return;
  }
  children(from, to, known);
}

function attributes(from, to) {
  const own = OWN[from.tagName] ?? [];
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) === value || own.includes(name)) continue;
    from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (to.hasAttribute(name) || own.includes(name) || OURS.has(name)) continue;
    from.removeAttribute(name);
  }
  if (from.tagName === "INPUT") input(from, to);
}

function input(from, to) {
  // What was typed or chosen stays; what nobody touched follows the server.
  const value = to.getAttribute("value");
  if (from.getAttribute("value") !== value) {
    const typed = from.type !== "hidden" && from.value !== from.defaultValue;
    const kept = from.value;
    if (value === null) from.removeAttribute("value");
    else from.setAttribute("value", value);
    if (typed) from.value = kept;
  }
  if (from.defaultChecked !== to.defaultChecked) {
    const chosen = from.checked !== from.defaultChecked;
    const kept = from.checked;
    from.defaultChecked = to.defaultChecked;
    if (chosen) from.checked = kept;
  }
}

function children(from, to, known) {
  let next = from.firstChild;
  const result = [...to.childNodes].map((there) => {
    let match = there.id ? known.get(there.id) : undefined;
    if (match && (!fits(match, there) || match.contains(from))) match = undefined;
    if (there.id) known.delete(there.id);
    else {
      // The next one of its kind that has no name.
      let free = next;
      while (free && (free.id || !fits(free, there))) free = free.nextSibling;
      if (free) next = (match = free).nextSibling;
    }
    return match ? { node: match, there } : fresh(there, known);
  });
  const wanted = new Set(result.map(({ node }) => node));
  for (const child of [...from.childNodes]) if (!wanted.has(child)) child.remove();
  arrange(from, result.map(({ node }) => node));
  for (const { node, there } of result) {
    if (!there) continue;
    if (node.nodeType === Node.ELEMENT_NODE) change(node, there, known);
    else if (node.data !== there.data) node.data = there.data;
  }
}

function fits(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function fresh(there, known) {
  // Something in it may be there already under its id, somewhere else.
  const nested = there.querySelectorAll?.("[id]") ?? [];
  if (![...nested].some((each) => known.has(each.id))) return { node: there };
  return { node: there.cloneNode(false), there };
}

function arrange(parent, wanted) {
  // What has the focus is not moved: the others move around it.
  const focused = wanted.find((node) => node.contains(document.activeElement));
  let here = parent.firstChild;
  for (const node of wanted) {
    if (node !== here && here && node.parentNode === parent) {
      if (node === focused) while (here !== node) here = put(parent, here, node.nextSibling);
      else if (node === here.nextSibling && here !== focused) here = put(parent, here, null);
    }
    if (node === here) here = here.nextSibling;
    else put(parent, node, here);
  }
}

/** Put a node before another; return the one that followed it. */
function put(parent, node, before) {
  const following = node.nextSibling;
  // Moving keeps what inserting would lose, where the browser can.
  if (parent.moveBefore && node.isConnected && parent.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
  return following;
}
