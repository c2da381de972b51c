// Shows the API. Where a key is needed, it is asked for, and never leaves this page but for requests.

const form = document.getElementById("sign-in");
const problem = document.getElementById("problem");
const field = document.getElementById("key");
let key = "";

async function show() {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const answer = await fetch("openapi.json", { headers });
  if (!answer.ok) {
    const { detail } = await answer.json().catch(() => ({}));
    problem.textContent = detail ?? `The server answered with ${answer.status}.`;
    form.hidden = false;
    field.focus();
    return;
  }
  form.hidden = true;
  window.SwaggerUIBundle({
    spec: await answer.json(),
    dom_id: "#api",
    docExpansion: "list",
    filter: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    // Where it is, so that a server below a prefix is asked, too.
    requestInterceptor: (request) => {
      if (key && !request.headers.Authorization) request.headers.Authorization = `Bearer ${key}`;
      return request;
    },
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  key = field.value.trim();
  field.value = "";
  show();
});
show();
