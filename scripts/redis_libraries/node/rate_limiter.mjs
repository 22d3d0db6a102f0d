// rate-limiter-flexible: eight processes share limits of 200 points, with each way to ask the server.

import assert from "node:assert/strict";
import Redis from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { PORT, inProcesses, main, until } from "./support.mjs";

const PROCESSES = 8;
const TRIES = 100;
const POINTS = 200;
const client = new Redis(PORT);
const limiters = [{}, { inMemoryBlockOnConsumed: POINTS }, { blockDuration: 3600 }].map(
  (options, number) =>
    new RateLimiterRedis({ storeClient: client, points: POINTS, duration: 3600, keyPrefix: `limit-${number}`, ...options }),
);

async function hit() {
  const hits = limiters.map(() => 0);
  for (let number = 0; number < TRIES; number++) {
    await Promise.all(
      limiters.map(async (limiter, index) => {
        const refusal = await limiter.consume("all").then(() => null, (reason) => reason);
        if (refusal instanceof Error) throw refusal;
        hits[index] += refusal ? 0 : 1;
      }),
    );
  }
  console.log(JSON.stringify(hits));
}

async function scenario() {
  const lines = (await inProcesses(PROCESSES, "hit")).map((line) => JSON.parse(line));
  const hits = limiters.map((_, index) => lines.reduce((sum, line) => sum + line[index], 0));
  assert.deepEqual(hits, limiters.map(() => POINTS));
  const brief = new RateLimiterRedis({ storeClient: client, points: 1, duration: 1, keyPrefix: "brief" });
  await brief.consume("all");
  assert.equal(await brief.consume("all").then(() => true, () => false), false, "a second hit in one second");
  await until(async () => (await brief.get("all")) === null);
  await brief.consume("all");
  return `${PROCESSES} processes, ${TRIES} hits each: ${POINTS} succeeded, with each of ${limiters.length} kinds; a window of a second ends`;
}

await main({ scenario, hit });
