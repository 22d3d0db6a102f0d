// redlock over ioredis: held by one of four processes at a time, extended, and free once the time of a killed holder is over.

import assert from "node:assert/strict";
import Redis from "ioredis";
import Redlock from "redlock";
import { PORT, inProcesses, main, start, untilClosed } from "./support.mjs";

const PROCESSES = 4;
const ROUNDS = 50;
const client = new Redis(PORT);
const patient = new Redlock([client], { retryCount: 2000, retryDelay: 10, retryJitter: 10 });
const impatient = new Redlock([client], { retryCount: 0 });

async function count() {
  for (let round = 0; round < ROUNDS; round++) {
    const lock = await patient.lock("lock", 30_000);
    await client.set("count", Number(await client.get("count")) + 1);
    await lock.unlock();
  }
}

async function hold() {
  await (await patient.lock("lock", 1000)).extend(2000);
  console.log("held");
  await untilClosed();
}

async function scenario() {
  await inProcesses(PROCESSES, "count");
  assert.equal(Number(await client.get("count")), PROCESSES * ROUNDS);
  const { child, ended } = await new Promise((resolve) => {
    const holder = start("hold", () => resolve(holder));
  });
  await assert.rejects(impatient.lock("lock", 1000), "acquired a held lock");
  child.kill("SIGKILL");
  assert.equal(await ended, "SIGKILL");
  await (await patient.lock("lock", 1000)).unlock();
  assert.equal(await client.exists("lock"), 0, "the lock is left");
  return `${PROCESSES} processes counted to ${PROCESSES * ROUNDS}; the lock of a killed process was free when its time was over`;
}

await main({ scenario, count, hold });
