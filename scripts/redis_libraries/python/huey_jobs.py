"""huey: 1,000 tasks, two consumers, one killed by its task, which is lost, as huey says; a result, a delay and a lock."""

from huey import RedisHuey
from support import FATAL_JOB, JOB_COUNT, URL, Workers, expect, main, run

huey = RedisHuey("jobs", url=URL)


@huey.task(name="task")
def task(number):
    run(number)
    return number


@huey.task(name="locked")
@huey.lock_task("lock")
def locked(number):
    return number


def work():
    huey.create_consumer(workers=1, periodic=False, scheduler_interval=1).run()


def scenario(script):
    results = [task(number) for number in range(JOB_COUNT)]
    with Workers(script, 2) as workers:
        workers.collect_all(but={FATAL_JOB})
        expect(results[0].get(blocking=True, timeout=60), 0, "a result")
        later = locked.schedule((5,), delay=1)
        expect(later.get(blocking=True, timeout=60), 5, "the result of a delayed task")
        expect(sorted(workers.stop()), [-9, 0], "exit codes of the consumers")
        expect(set(workers.numbers.values()), {1}, "times that each job was done")
        expect(FATAL_JOB in workers.numbers, False, "the killed consumer's task was done")
    expect(len(huey), 0, "queued tasks")
    return f"{JOB_COUNT - 1} tasks done once, that of the killed consumer lost, as huey says; a delayed and locked task"


if __name__ == "__main__":
    main(__file__, scenario, work=work)
