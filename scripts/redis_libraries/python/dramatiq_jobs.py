"""dramatiq: 1,000 messages, two workers, one killed by its message, which the other gets once the heartbeat is missing."""

import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from support import JOB_COUNT, URL, Workers, expect, main, run

# Each fetch also looks for workers without a heartbeat for two seconds.
broker = RedisBroker(url=URL, heartbeat_timeout=2_000, maintenance_chance=1_000_000)
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=0)
def act(number):
    run(number)


def work():
    worker = dramatiq.Worker(broker, worker_threads=1)
    worker.start()
    sys.stdin.read()
    worker.stop()


def scenario(script):
    for number in range(JOB_COUNT):
        act.send(number)
    with Workers(script, 2) as workers:
        workers.collect_all()
        broker.join("default", timeout=60_000)
        for process in workers.processes:
            process.stdin.close()
        expect(sorted(workers.wait()), [-9, 0], "exit codes of the workers")
        return f"{JOB_COUNT} messages handled, those of the killed worker by the other, {workers.repeated()} twice"


if __name__ == "__main__":
    main(__file__, scenario, work=work)
