// Parts of the scenarios: processes, jobs of which one kills its worker, and the choice of a role.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

export const PORT = Number(process.env.REDIS_PORT);
export const JOB_COUNT = 1000;
// The job that kills its worker when it runs for the first time.
export const FATAL_JOB = 300;

// The work of a job: reports its number to the scenario; the fatal job ends the process the first time.
export function run(number) {
  if (number === FATAL_JOB) {
    try {
      closeSync(openSync(`${process.env.SCENARIO_DIR}/killed`, "wx"));
      process.kill(process.pid, "SIGKILL");
    } catch (error) {
      assert.equal(error.code, "EEXIST");
    }
  }
  writeSync(1, `${number}\n`);
}

// Starts this script in a role; its lines go to `onLine`.
export function start(role, onLine) {
  const child = spawn(process.execPath, [process.argv[1], role], { stdio: ["pipe", "pipe", "inherit"] });
  createInterface({ input: child.stdout }).on("line", onLine);
  const ended = once(child, "close").then(([code, signal]) => signal ?? code);
  return { child, ended };
}

// Runs this script in a role in several processes; returns the last line of each.
export async function inProcesses(count, role) {
  const last = [];
  const ends = [];
  for (let index = 0; index < count; index++) {
    ends.push(start(role, (line) => (last[index] = line)).ended);
  }
  assert.deepEqual(await Promise.all(ends), Array(count).fill(0), "exit codes");
  return last;
}

// Starts two workers and waits until they have done each job, one of which kills its worker; returns how many were done twice.
export async function doAllJobs() {
  const times = new Map();
  let isComplete;
  const complete = new Promise((resolve) => (isComplete = resolve));
  const onLine = (line) => {
    times.set(line, (times.get(line) ?? 0) + 1);
    if (times.size === JOB_COUNT) isComplete();
  };
  const workers = [start("work", onLine), start("work", onLine)];
  await complete;
  workers.forEach(({ child }) => child.stdin.end());
  const ends = await Promise.all(workers.map(({ ended }) => ended));
  assert.deepEqual(ends.sort(), [0, "SIGKILL"], "ends of the workers");
  return [...times.values()].filter((count) => count > 1).length;
}

// Waits until the scenario closes this process's standard input.
export async function untilClosed() {
  process.stdin.resume();
  await once(process.stdin, "end");
}

// Repeats a question to the server until the answer is yes; the scenario's time is limited by its runner.
export async function until(isReached) {
  while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 20));
}

// Runs the scenario, or the role that the command line names, and ends the process.
export async function main(roles) {
  const said = await roles[process.argv[2] ?? "scenario"]();
  if (said) console.log(said);
  process.exit(0);
}
