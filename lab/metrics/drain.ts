/** A process that drains a queue, with or without metrics, and prints the CPU time of a job in µs. Arguments: variant, URL, jobs, folder of the sources. */
const [variant = '', url = '', jobs = '', sources = '../../src/'] = process.argv.slice(2)
const { Millpond } = await import(`${sources}index.ts`)
const count = Number(jobs)
const pond = await Millpond.open(url)
const queue = pond.queue('drained', { capacity: 1_000_000, keep: { done: 0 } })

if (variant === 'metrics') {
  const { metrics } = await import(`${sources}web/index.ts`)
  const handle = metrics(pond)
  setInterval(() => void handle(new Request('http://localhost/metrics')), 1000).unref()
}
if (variant === 'opentelemetry, ended') {
  const { instrument } = await import(`${sources}opentelemetry/index.ts`)
  instrument()()
}

/** Jobs that wait at once: a heap of hundreds of thousands is collected when V8 likes, which costs more than all that is measured. */
const BLOCK = 20_000

/** @returns µs of CPU time a job, without those that pushed */
async function drain(many: number): Promise<number> {
  let spent = 0
  for (let from = 0; from < many; from += BLOCK) {
    const block = Math.min(BLOCK, many - from)
    await queue.pushMany(Array.from({ length: block }, (_, n) => n))
    spent += await drainBlock(block)
  }
  return spent / many
}

async function drainBlock(block: number): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const began = process.cpuUsage()
  let done = 0
  const worker = queue.work(
    () => {
      if (++done === block) resolve()
    },
    { concurrency: 50 },
  )
  await promise
  await worker.close()
  const { user, system } = process.cpuUsage(began)
  return user + system
}

await drain(Math.min(50_000, count))
console.log(await drain(count))
await pond.close()
