// connect-redis with express-session and node-redis: sessions of web pages stored, read, touched, left and expired.

import assert from "node:assert/strict";
import { once } from "node:events";
import { RedisStore } from "connect-redis";
import express from "express";
import session from "express-session";
import { createClient } from "redis";
import { PORT, main, until } from "./support.mjs";

const client = await createClient({ url: `redis://127.0.0.1:${PORT}` }).connect();
const store = new RedisStore({ client, prefix: "session:" });

async function site(maxAge) {
  const app = express();
  app.use(session({ store, secret: "none", resave: false, saveUninitialized: false, cookie: { maxAge } }));
  app.get("/count", (request, response) => {
    request.session.count = (request.session.count ?? 0) + 1;
    response.send(String(request.session.count));
  });
  app.get("/leave", (request, response) => request.session.destroy(() => response.send("left")));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

// A browser, as far as it keeps one cookie.
function browser(address) {
  let cookie = "";
  return async (path) => {
    const response = await fetch(address + path, { headers: { cookie } });
    cookie = response.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return response.text();
  };
}

async function scenario() {
  const address = await site(3_600_000);
  const [ada, bob] = [browser(address), browser(address)];
  assert.deepEqual([await ada("/count"), await ada("/count"), await bob("/count"), await ada("/count")], ["1", "2", "1", "3"]);
  const ids = await store.ids();
  assert.equal(ids.length, 2);
  assert.ok((await client.ttl(`session:${ids[0]}`)) > 3500);
  assert.deepEqual((await store.all()).map(({ count }) => count).sort(), [1, 3]);
  await ada("/leave");
  assert.deepEqual([await store.length(), await ada("/count"), await bob("/count")], [1, "1", "2"]);
  const brief = browser(await site(1000));
  assert.equal(await brief("/count"), "1");
  assert.equal(await store.length(), 3);
  await until(async () => (await store.length()) === 2);
  await store.clear();
  assert.equal(await store.length(), 0);
  return "sessions were stored, read, left, and gone when their time was over";
}

await main({ scenario });
