/** Moves a large queue while producers and workers run on both sides and the mover is killed: README.md. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../src/index.ts'
import { atLeast, atMost, compact } from '../bars.ts'
import { Child, holds } from '../child.ts'
import { treeCpu } from '../cpu.ts'
import type { Experiment } from '../experiment.ts'
import { type Flag, whole } from '../flags.ts'
import type { StoreName } from '../places.ts'
import { tell } from '../progress.ts'
import { Calls } from '../store.ts'

const MIN_RATE = 20_000
const FILL = 10_000
const LOOK = 100
/** Jobs that a move has taken and not yet removed: two batches. */
const TAKEN = 2000

interface Report {
  moved: number
  repeated: number
  left: number
}
const isReport = holds<Report>('moved', 'repeated', 'left')

function store(about: string, usual: StoreName): Flag<StoreName> {
  return { takes: 'STORE', about, usual, quick: usual, read: (text) => text as StoreName }
}

const flags = {
  jobs: whole('at the source at the start', '1M', '60k'),
  kills: whole('of the mover', '5', '3'),
  from: store('the source', 'sqlite'),
  to: store('the target', 'redis'),
}

export const moving: Experiment<typeof flags> = {
  id: 'move',
  flags,
  about: ({ jobs, kills, from, to }) =>
    `${jobs.toLocaleString('en')} jobs are moved from ${from} to ${to}, with a producer and a worker on each side; the mover is killed ${kills} times.`,
  async *measure({ jobs, kills, from, to }, stage) {
    const source = await (await stage.place(from)).fresh()
    const target = await (await stage.place(to)).fresh()
    await fill(source, jobs)
    const at = (name: string, ...args: string[]) => Child.start(new URL(name, import.meta.url), args)
    const workers = [await at('worker.ts', source), await at('worker.ts', target)]
    const producers = [
      await at('producer.ts', source, `${jobs}`, '2'),
      await at('producer.ts', target, `${jobs + 1}`, '2'),
    ]
    const began = treeCpu(process.pid)
    const { ms, repeated } = await moveAll(source, target, jobs, kills)
    const cpu = treeCpu(process.pid) - began

    const pushed: number[] = []
    for (const producer of producers) pushed.push((await producer.tell(holds<{ pushed: number }>('pushed'))).pushed)
    const rest = await moveOnce(source, target)
    const ran: number[][] = []
    for (const worker of workers) ran.push((await worker.tell(holds<{ ran: number[] }>('ran'))).ran)
    await Promise.all([...workers, ...producers].map((child) => child.stop()))

    tell('looks what is where')
    const waiting = [...(await numbersAt(source)), ...(await numbersAt(target))]
    const total = jobs + pushed.reduce((sum, count) => sum + count, 0)
    const times = new Map<number, number>()
    for (const number of [...ran.flat(), ...waiting]) times.set(number, (times.get(number) ?? 0) + 1)
    const twice = [...times.values()].filter((count) => count > 1).length
    // RabbitMQ gives what a killed move had taken to its own workers at once, as after a lost lease.
    const mayTwice = from === 'rabbitmq' ? kills * TAKEN : 0
    // Nobody moves what the worker of the source alone has run, nor what was pushed at the target.
    const moved = total - (ran[0]?.length ?? 0) - (pushed[1] ?? 0) - rest.moved + twice
    const figures = {
      total,
      moved,
      repeated: repeated + rest.repeated,
      lost: total - times.size,
      twice,
      ms,
      cpu,
      ran: ran.map((one) => one.length),
    }
    const rate = (moved / ms) * 1000
    const cells = [total, figures.ran[0] ?? 0, moved, figures.ran[1] ?? 0, figures.repeated].map((count) =>
      count.toLocaleString('en'),
    )
    yield {
      head: ['', 'jobs', 'run at the source', 'moved', 'run at the target', 'repeated', 'lost', 'twice', 'jobs/s'],
      rows: [
        {
          cells: [`${from} to ${to}`, ...cells, `${figures.lost}`, `${twice}`, compact(rate)],
          bars: [atMost(figures.lost, 0, ' lost'), atMost(twice, mayTwice, ' twice'), atLeast(rate, MIN_RATE, '/s')],
          figures,
        },
      ],
      notes: [
        `The mover was killed ${kills} times, and ran ${(ms / 1000).toFixed(1)} s in all.`,
        `Meanwhile movers, servers, producers and workers took ${((cpu / moved) * 1e6).toFixed(0)} µs of CPU for each job that was moved.`,
      ],
    }
  },
}

async function fill(url: string, jobs: number): Promise<void> {
  const pond = await Millpond.open(url)
  const queue = pond.queue<number>('numbers')
  for (let at = 0; at < jobs; at += FILL) {
    tell(`fills ${at}`)
    await queue.pushMany(Array.from({ length: Math.min(FILL, jobs - at) }, (_, n) => at + n))
  }
  await pond.close()
}

/** @returns how long movers ran, and how many jobs the target had already. */
async function moveAll(
  source: string,
  target: string,
  jobs: number,
  kills: number,
): Promise<{ ms: number; repeated: number }> {
  const pond = await Millpond.open(source)
  let ms = 0
  for (let kill = 0; kill < kills; kill++) {
    const began = performance.now()
    const mover = await Child.start(new URL('mover.ts', import.meta.url), [source, target])
    const until = jobs * (1 - (kill + 1) / (kills + 1))
    for (let left = jobs; left > until; ) {
      await sleep(LOOK)
      left = (await pond.queue('numbers').stats()).counts.waiting
      tell(`mover ${kill + 1}: ${left} left`)
    }
    await mover.kill()
    ms += performance.now() - began
  }
  await pond.close()
  const began = performance.now()
  const { repeated } = await moveOnce(source, target)
  return { ms: ms + performance.now() - began, repeated }
}

async function moveOnce(source: string, target: string): Promise<Report> {
  const heard = Promise.withResolvers<Report>()
  const mover = await Child.start(new URL('mover.ts', import.meta.url), [source, target], (message) => {
    if (isReport(message)) heard.resolve(message)
  })
  const report = await Promise.race([heard.promise, mover.ended])
  await mover.stop()
  return report
}

async function numbersAt(url: string): Promise<number[]> {
  const calls = await Calls.open(url, 'numbers')
  const numbers = await calls.waiting()
  await calls.close()
  return numbers
}
