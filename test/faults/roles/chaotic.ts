/** Pushes its share of the units of a chaos, works off jobs of all, changes some in bulk, and declares schedules. */
import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queue } from '../../../src/index.ts'
import { BULK_GROUP, idOf, labelOf, type PlannedJob, queuesOf, TICKS, UNIT_QUEUES, unitOf } from '../chaos-plan.ts'
import { line } from '../ledger.ts'
import { codeOf, config, onHearing, openPatiently, say, sayTrouble } from './role.ts'

export interface ChaoticConfig {
  url: string
  seed: number
  /** Numbers of the units that it pushes, those of a process that was killed among them. */
  units: readonly number[]
  /** Names of schedules that fire each second. */
  schedules: readonly string[]
  lease: number
  /** Where it writes the start and the end of each job, and what became of each try to push a unit. */
  ledger: string
  tries: string
}

interface Data {
  fails: PlannedJob['fails']
}

const { url, seed, units, schedules, lease, ledger, tries } = config<ChaoticConfig>()
// Appended at once, so that the lines of all processes have one order.
const [file, tryFile] = [openSync(ledger, 'a'), openSync(tries, 'a')]
const pond = await openPatiently(url)
sayTrouble(pond)
pond.on('dead', ({ id, error }) => say('dead', { id, code: error.code }))
const queues = new Map<string, Queue<Data>>()
for (const [name, options] of Object.entries(queuesOf(lease))) queues.set(name, pond.queue<Data>(name, options))
const queueOf = (name: string): Queue<Data> => queues.get(name) ?? pond.queue(name)
let over = false

async function push(number: number, attempt: string): Promise<readonly { id: string; existing: boolean }[]> {
  const { kind, jobs } = unitOf(seed, number)
  const optionsOf = ({ fails, group, key, priority, delay }: PlannedJob, at: number) => ({
    ...{ id: idOf(seed, number, attempt, at), group, key, priority, delay },
    ...(fails === 'dead' ? { attempts: 1 } : {}),
  })
  if (kind === 'callback') {
    const [list, last] = [jobs.slice(0, -1), jobs.length - 1]
    const callback = [queueOf('reports'), { fails: 'no' }, { id: idOf(seed, number, attempt, last) }] as const
    const each = (_: Data, at: number) => optionsOf(list[at] as PlannedJob, at)
    const pushed = await queueOf(list[0]?.queue ?? '').pushMany<Data>(
      list.map(({ fails }) => ({ fails })),
      { each, callback },
    )
    return [...pushed.jobs, pushed.callback]
  }
  return pond.pushAll(
    jobs.map((job, at) => {
      const links = job.parents.length === 0 ? {} : { after: job.parents, onDead: job.onDead }
      return [queueOf(job.queue), { fails: job.fails }, { ...optionsOf(job, at), ...links }] as const
    }),
  )
}

async function pushUnits(): Promise<void> {
  for (const number of units) {
    for (let nth = 0, isPushed = false; !isPushed && !over; nth++) {
      const attempt = `${process.pid}.${nth}`
      const note = (...words: string[]) => writeSync(tryFile, `${number} ${attempt} ${words.join(' ')}\n`)
      note('begun')
      try {
        const pushed = await push(number, attempt)
        note('pushed', ...pushed.map(({ id }) => id))
        isPushed = true
      } catch (error) {
        note('refused', codeOf(error))
        await sleep(20 + Math.random() * 50)
      }
    }
    if (over) return
    say('pushed', { unit: number })
    if (unitOf(seed, number).kind === 'bulk') await changeSome().catch(codeOf)
  }
  say('all-pushed')
}

/** Cancels and requeues jobs of those units that are there for it, their own and others'. */
async function changeSome(): Promise<void> {
  for (const name of UNIT_QUEUES) {
    const luck = Math.random()
    if (luck < 0.4) await queueOf(name).cancelAll({ group: BULK_GROUP, ...(luck < 0.2 ? { state: 'blocked' } : {}) })
    else if (luck < 0.8) await queueOf(name).requeueAll({ group: BULK_GROUP, state: luck < 0.6 ? 'cancelled' : 'dead' })
  }
}

for (const [name, queue] of queues) {
  queue.work(
    async ({ id, fence, attempt, data, group }) => {
      const job = { id, fence, group: labelOf(name, group) }
      writeSync(file, line('start', process.pid, job))
      await sleep(Math.random() * 6)
      const isAgain = name !== TICKS && data.fails === 'once' && attempt === 1
      writeSync(file, line(isAgain ? 'back' : 'end', process.pid, job))
      if (isAgain || (name !== TICKS && data.fails === 'dead')) throw new Error('it fails')
    },
    { concurrency: 10 },
  )
}

async function declare(): Promise<void> {
  for (const name of schedules) {
    for (let isDeclared = false; !isDeclared && !over; ) {
      try {
        await pond.schedule(name, 'every 1s', queueOf(TICKS), { fails: 'no' }, { missed: 'all' })
        isDeclared = true
      } catch (error) {
        say('trouble', { code: codeOf(error) })
        await sleep(50)
      }
    }
  }
}

onHearing('close', async () => {
  over = true
  await pond.close()
  say('closed')
  process.disconnect()
})
say('busy')
await Promise.all([pushUnits(), declare()])
