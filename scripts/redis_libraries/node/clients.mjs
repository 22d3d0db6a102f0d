// The two clients' own features, each given by its name: transactions, pipelines, scripts, messages, scans, blocking reads.

import assert from "node:assert/strict";
import Redis from "ioredis";
import { createClient, defineScript } from "redis";
import { PORT, main } from "./support.mjs";

const ADD = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
const KEYS = Array.from({ length: 1000 }, (_, number) => `key:${number}`);

async function ioredis() {
  const client = new Redis(PORT, { enableAutoPipelining: true });
  assert.deepEqual(new Set(await Promise.all(KEYS.map((key) => client.set(key, key)))), new Set(["OK"]));
  assert.deepEqual(await Promise.all(KEYS.map((key) => client.get(key))), KEYS);
  assert.deepEqual(await client.multi().incr("n").incr("n").exec(), [[null, 1], [null, 2]]);
  await client.watch("n");
  await client.duplicate().incr("n");
  assert.equal(await client.multi().incr("n").exec(), null, "a transaction with a changed key");
  client.defineCommand("add", { numberOfKeys: 1, lua: ADD });
  assert.deepEqual([await client.add("sum", 40), await client.add("sum", 2)], [40, 42]);
  const found = new Set();
  for await (const keys of client.scanStream({ match: "key:*", count: 100 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, KEYS.length);
  const subscriber = client.duplicate();
  await subscriber.psubscribe("news:*");
  const heard = new Promise((resolve) => subscriber.on("pmessage", (...words) => resolve(words)));
  await client.publish("news:1", "text");
  assert.deepEqual(await heard, ["news:*", "news:1", "text"]);
  const popped = client.duplicate().blpop("list", 30);
  await client.rpush("list", "element");
  assert.deepEqual(await popped, ["list", "element"]);
  await client.hset("hash", { one: 1, two: 2 });
  assert.deepEqual(await client.hgetall("hash"), { one: "1", two: "2" });
  return "pipelines, transactions, a script, a scan, messages, a blocking read";
}

async function nodeRedis() {
  const scripts = { add: defineScript({ NUMBER_OF_KEYS: 1, SCRIPT: ADD, parseCommand: (parser, key, by) => (parser.pushKey(key), parser.push(String(by))), transformReply: (reply) => reply }) };
  for (const RESP of [2, 3]) {
    const client = await createClient({ url: `redis://127.0.0.1:${PORT}`, RESP, scripts }).connect();
    await client.flushDb();
    await Promise.all(KEYS.map((key) => client.set(key, key)));
    assert.deepEqual(await client.mGet(KEYS), KEYS);
    assert.deepEqual(await client.multi().incr("n").incr("n").exec(), [1, 2]);
    assert.deepEqual([await client.add("sum", 40), await client.add("sum", 2)], [40, 42]);
    const found = new Set();
    for await (const keys of client.scanIterator({ MATCH: "key:*", COUNT: 100 })) [keys].flat().forEach((key) => found.add(key));
    assert.equal(found.size, KEYS.length);
    const subscriber = await client.duplicate().connect();
    const heard = new Promise((resolve) => subscriber.subscribe("news", (text) => resolve(text)).then(() => client.publish("news", "text")));
    assert.equal(await heard, "text");
    const popped = (await client.duplicate().connect()).blPop("list", 30);
    await client.rPush("list", "element");
    assert.equal((await popped).element, "element");
    await client.hSet("hash", { one: 1, two: 2 });
    assert.deepEqual({ ...(await client.hGetAll("hash")) }, { one: "1", two: "2" });
    await client.zAdd("sorted", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]);
    assert.deepEqual((await client.zRangeWithScores("sorted", 0, -1)).map(({ score }) => score), [1, 2.5]);
    assert.equal((await client.info("server")).includes("redis_version"), true);
    assert.ok((await client.command()).length > 100);
  }
  return "in RESP2 and RESP3: pipelines, transactions, a script, a scan, messages, a blocking read";
}

await main({ ioredis, "node-redis": nodeRedis });
