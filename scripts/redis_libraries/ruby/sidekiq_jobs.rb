# Sidekiq: 1,000 jobs, two processes, one killed by its job, which is lost, as Sidekiq says; a delayed job, a retry.

require "sidekiq"
require "sidekiq/api"
require "timeout"

# The client deprecates calls of this Sidekiq.
Redis.silence_deprecations = true

JOB_COUNT = 1000
# The job that kills its process.
FATAL_JOB = 300
REPORTS = 3
WAIT_SECONDS_MAX = 120

url = { url: "redis://127.0.0.1:#{ENV.fetch("REDIS_PORT")}/0" }
Sidekiq.configure_client { |config| config.redis = url }
Sidekiq.configure_server do |config|
  config.redis = url
  config.average_scheduled_poll_interval = 1
end

# Reports its number; some numbers fail once, or end the process.
class Job
  include Sidekiq::Worker
  sidekiq_options retry: 1
  sidekiq_retry_in { 1 }

  def perform(number, fails = false)
    if fails
      File.open("#{ENV.fetch("SCENARIO_DIR")}/failed", File::CREAT | File::EXCL).close
      raise "fails once"
    end
  rescue Errno::EEXIST
    report(number)
  else
    Process.kill(:KILL, Process.pid) if number == FATAL_JOB
    report(number)
  end

  def report(number)
    IO.for_fd(REPORTS, autoclose: false).syswrite("#{number}\n")
  end
end

def expect(found, wanted, what)
  raise "#{what}: #{found.inspect}, not #{wanted.inspect}" unless found == wanted
end

def scenario
  Sidekiq::Client.push_bulk("class" => Job, "args" => (0...JOB_COUNT).map { |number| [number] })
  expect(Sidekiq::Queue.new.size, JOB_COUNT, "queued jobs")
  reader, writer = IO.pipe
  command = ["sidekiq", "--require", File.expand_path(__FILE__), "--concurrency", "1", "--timeout", "5"]
  processes = 2.times.map { spawn(*command, REPORTS => writer, out: :err) }
  times = Hash.new(0)
  collect = ->(count) { times[Integer(reader.gets)] += 1 while times.size < count }
  begin
    Timeout.timeout(WAIT_SECONDS_MAX) { collect.call(JOB_COUNT - 1) }
    Job.perform_in(1, JOB_COUNT)
    Job.perform_async(JOB_COUNT + 1, true)
    Timeout.timeout(WAIT_SECONDS_MAX) { collect.call(JOB_COUNT + 1) }
  ensure
    # The killed one has ended.
    processes.each { |process| Process.kill(:TERM, process) rescue Errno::ESRCH }
    ends = processes.map { |process| Process.wait2(process)[1] }
  end
  expect(ends.map(&:termsig).compact, [Signal.list["KILL"]], "signals that ended processes")
  expect(times.values.uniq, [1], "times of each job")
  expect(times.key?(FATAL_JOB), false, "the killed process's job was done")
  stats = Sidekiq::Stats.new
  expect([stats.enqueued, stats.retry_size, stats.dead_size, stats.scheduled_size], [0, 0, 0, 0], "jobs left")
  puts "#{JOB_COUNT - 1} jobs done once, that of the killed process lost, as Sidekiq says; a delayed job, a retry"
end

scenario if $PROGRAM_NAME == __FILE__
