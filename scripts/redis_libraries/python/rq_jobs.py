"""rq: 1,000 jobs, two workers, one of which is killed by its job; the job is found abandoned and is queued again."""

import time

from redis import Redis
from rq import Queue, SimpleWorker
from rq.job import JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from support import FATAL_JOB, JOB_COUNT, PORT, Workers, expect, main

CONNECTION = Redis(port=PORT)


def work():
    SimpleWorker(["jobs"], connection=CONNECTION).work(burst=True, logging_level="ERROR", with_scheduler=False)


def scenario(script):
    queue = Queue("jobs", connection=CONNECTION)
    jobs = queue.enqueue_many([Queue.prepare_data("support.run", (number,), result_ttl=600) for number in range(JOB_COUNT)])
    expect(len(queue), JOB_COUNT, "queued jobs")
    abandoned = jobs[FATAL_JOB].id
    with Workers(script, 2) as workers:
        expect(sorted(workers.wait()), [-9, 0], "exit codes of the workers")
        expect(set(range(JOB_COUNT)) - set(workers.numbers), {FATAL_JOB}, "jobs that were not done")
        started = StartedJobRegistry(queue=queue)
        expect(started.get_job_ids(), [abandoned], "started jobs")
        # As a later worker does it once the job's time is over.
        started.cleanup(timestamp=time.time() + 3600)
        failed = FailedJobRegistry(queue=queue)
        expect(failed.get_job_ids(), [abandoned], "failed jobs")
        failed.requeue(abandoned)
        workers.start()
        expect(workers.wait(), [0], "exit code of the third worker")
        expect(set(workers.numbers.values()), {1}, "times that each job was done")
    jobs[FATAL_JOB].refresh()
    expect(jobs[FATAL_JOB].get_status(), JobStatus.FINISHED, "status of the job")
    expect(FinishedJobRegistry(queue=queue).count, JOB_COUNT, "finished jobs")
    return f"{JOB_COUNT} jobs, each done once; that of the killed worker was found abandoned and queued again"


main(__file__, scenario, work=work)
