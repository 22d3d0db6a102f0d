"""Celery: 1,000 tasks with late acknowledgement, two workers, one killed by its task; a chord of ten tasks."""

import os

from celery import Celery, chord
from support import FATAL_JOB, JOB_COUNT, URL, Workers, expect, main, run

app = Celery("celery_jobs", broker=URL, backend=URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    # An unacknowledged task goes to another worker after three seconds; workers look for such tasks each second.
    broker_transport_options={"visibility_timeout": 3, "unacked_restore_interval": 1, "unacked_restore_throttle": 1},
    task_acks_late=True,
    worker_prefetch_multiplier=1,
)


@app.task(name="task")
def task(number):
    run(number)
    return number


@app.task(name="square")
def square(number):
    return number * number


@app.task(name="total")
def total(numbers):
    return sum(numbers)


def work():
    app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", "--hostname", f"worker-{os.getpid()}@here"])


def scenario(script):
    results = [task.delay(number) for number in range(JOB_COUNT)]
    with Workers(script, 2) as workers:
        workers.collect_all()
        expect([result.get(timeout=60) for result in results], list(range(JOB_COUNT)), "results")
        expect(chord(square.s(number) for number in range(10))(total.s()).get(timeout=60), 285, "the chord's result")
        expect(sorted(workers.stop()), [-9, 0], "exit codes of the workers")
        repeated = workers.repeated()
    expect(results[FATAL_JOB].status, "SUCCESS", "status of the killed worker's task")
    return f"{JOB_COUNT} tasks done, that of the killed worker by the other, {repeated} twice; a chord"


if __name__ == "__main__":
    main(__file__, scenario, work=work)
