// BullMQ: 1,000 jobs, two workers, one killed by its job, which stalls and is done by the other worker. Each change of a
// job is an entry of a stream, which the scenario reads.

import assert from "node:assert/strict";
import { Queue, QueueEvents, Worker } from "bullmq";
import { JOB_COUNT, PORT, doAllJobs, main, run, until, untilClosed } from "./support.mjs";

const CONNECTION = { host: "127.0.0.1", port: PORT, maxRetriesPerRequest: null };

async function work() {
  const settings = { connection: CONNECTION, lockDuration: 10_000, stalledInterval: 1000 };
  const worker = new Worker("jobs", async ({ data }) => run(data.number), settings);
  await untilClosed();
  await worker.close();
}

async function scenario() {
  const queue = new Queue("jobs", { connection: CONNECTION });
  const events = new QueueEvents("jobs", { connection: CONNECTION });
  const [completed, stalled] = [new Set(), new Set()];
  events.on("completed", ({ jobId }) => completed.add(jobId));
  events.on("stalled", ({ jobId }) => stalled.add(jobId));
  await events.waitUntilReady();
  await queue.addBulk(Array.from({ length: JOB_COUNT }, (_, number) => ({ name: "job", data: { number } })));
  const repeated = await doAllJobs();
  await until(() => completed.size === JOB_COUNT);
  assert.equal(stalled.size, 1, "stalled jobs");
  assert.equal(await queue.getCompletedCount(), JOB_COUNT, "completed jobs");
  assert.equal((await queue.getJobs(["active", "failed", "wait"])).length, 0, "other jobs");
  return `${JOB_COUNT} jobs done, the killed worker's by the other, ${repeated} twice; as many events read`;
}

await main({ scenario, work });
