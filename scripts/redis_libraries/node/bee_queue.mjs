// bee-queue: 1,000 jobs, two workers, one killed by its job, which stalls and is done by the other worker.

import assert from "node:assert/strict";
import Queue from "bee-queue";
import { JOB_COUNT, PORT, doAllJobs, main, run, untilClosed } from "./support.mjs";

const SETTINGS = { redis: { host: "127.0.0.1", port: PORT }, stallInterval: 2000, removeOnSuccess: false };

async function work() {
  const queue = new Queue("jobs", SETTINGS);
  queue.process(async (job) => {
    run(job.data.number);
    return job.data.number;
  });
  queue.checkStalledJobs(500);
  await untilClosed();
  await queue.close();
}

async function scenario() {
  const queue = new Queue("jobs", { ...SETTINGS, isWorker: false });
  const jobs = Array.from({ length: JOB_COUNT }, (_, number) => queue.createJob({ number }).retries(1));
  const errors = await queue.saveAll(jobs);
  assert.equal(errors.size, 0, "jobs that were not saved");
  const repeated = await doAllJobs();
  const { succeeded, failed, active, waiting } = await queue.checkHealth();
  assert.deepEqual({ succeeded, failed, active, waiting }, { succeeded: JOB_COUNT, failed: 0, active: 0, waiting: 0 });
  return `${JOB_COUNT} jobs done, the killed worker's by the other, ${repeated} twice`;
}

await main({ scenario, work });
