// Uses the types that openapi-typescript has made: a program of somebody who has only those.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });

function check(condition: unknown, told: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(told));
}

// Optional fields may be left out, and what is free may hold anything.
const request: components["schemas"]["JobRequest_add"] = {
  task: "add",
  args: { a: 1, b: 2 },
  meta: { trace: "abc" },
};
const stored = await client.POST("/jobs", { body: request });
check(stored.data, stored.error);
const id: string = stored.data.job_id;

const done = await client.GET("/jobs/{job_id}/result", {
  params: { path: { job_id: id }, query: { timeout: 30 } },
});
check(done.data && "result" in done.data && done.data.result === 3, done);

const listed = await client.GET("/jobs", { params: { query: { task: ["add"] } } });
check(listed.data?.jobs.length === 1 && listed.data.jobs[0].job_id === id, listed);

const shown = await client.GET("/jobs/{job_id}", { params: { path: { job_id: id } } });
check(JSON.stringify(shown.data?.meta) === '{"trace":"abc"}', shown);

const schedule = await client.PUT("/schedules/{name}", {
  params: { path: { name: "sums" } },
  body: { expression: "*/5 * * * *", task: "add", params: { a: 1, b: 2 } },
});
check(schedule.data?.tz === "UTC", schedule);

const refused = await client.GET("/jobs/{job_id}", {
  params: { path: { job_id: "01980000-0000-7000-8000-000000000000" } },
});
check(refused.error?.status === 404, refused);
console.log("used");
