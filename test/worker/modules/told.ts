/** A handler that does what its job says: harm, too. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Context, isMillpondError, type Job, MillpondError, Outcome } from '../../../src/index.ts'

const MIB = 1024 ** 2

type Action = (job: Job<Told>, ctx: Context) => unknown

export const ACTIONS = {
  echo: ({ data }) => data.value,
  facts: ({ data, ...facts }) => facts,
  times: ({ pushedAt, dueAt }) => [pushedAt.getTime(), dueAt.getTime()],
  pid: () => process.pid,
  env: () => process.env.MILLPOND_TOLD,
  nothing() {},
  parents: (_job, ctx) => ctx.parents(),

  heap() {
    const kept: number[][] = []
    for (;;) kept.push(Array.from({ length: 100_000 }, (_, n) => n + 0.5))
  },
  buffers() {
    const kept: Buffer[] = []
    for (;;) kept.push(Buffer.alloc(MIB, 1))
  },
  largeArray: () => new Array(200_000_000).fill(0.5).length,
  leak() {
    leaked.push(Buffer.alloc(60 * MIB, 1))
    return process.pid
  },
  spin() {
    for (;;);
  },
  async spinLater() {
    await sleep(1)
    for (;;);
  },
  /** Takes so many milliseconds of CPU time. */
  burn({ data }) {
    const end = cpuTime() + Number(data.value)
    while (cpuTime() < end);
    return process.pid
  },
  exit: ({ data }) => process.exit(Number(data.value)),
  abort: () => process.abort(),
  segfault() {
    process.kill(process.pid, 'SIGSEGV')
    for (;;);
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  async uncaught() {
    setTimeout(() => {
      throw new RangeError('uncaught')
    })
    await sleep(60_000)
  },
  async rejection() {
    void Promise.reject(new RangeError('unhandled'))
    await sleep(60_000)
  },

  error() {
    throw Object.assign(new RangeError('out of range', { cause: new Error('the cause') }), { code: 'E_RANGE' })
  },
  ownError() {
    throw new MillpondError('TimedOut', 'a call in the handler')
  },
  nonError() {
    throw { not: 'an error' }
  },
  retry: (_, ctx) => ctx.retry('1h', 'later'),
  giveUp(_, ctx) {
    throw ctx.giveUp(new RangeError('hopeless'))
  },
  outcome() {
    throw Outcome.giveUp('from deep inside')
  },
  rateLimited: (_, ctx) => ctx.rateLimited('1h'),
  unencodable: () => () => {},
  tooLarge: ({ data: { value = 2 } }) => 'x'.repeat(Number(value) * MIB),

  async progress({ data }, ctx) {
    ctx.progress(data.value)
    await sleep(60_000, undefined, { signal: ctx.signal })
  },
  progressAndSpin(_, ctx) {
    ctx.progress('before the loop')
    for (;;);
  },
  async logs({ data }, ctx) {
    ctx.log('first', { value: data.value, error: new RangeError('far') })
    ctx.log('m'.repeat(3000), { large: 'x'.repeat(5000) })
  },
  logAndSpin(_, ctx) {
    ctx.log('before the loop')
    for (;;);
  },
  badProgress: (_, ctx) => ctx.progress(() => {}),
  /** Ends when the signal is aborted, and writes why to the file. */
  async obey({ data }, ctx) {
    await aborted(ctx.signal)
    const { appendFileSync } = await import('node:fs')
    const { reason } = ctx.signal
    appendFileSync(String(data.value), isMillpondError(reason) ? reason.code : String(reason))
  },
  wait: () => sleep(60_000),
  block: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  soon: ({ data }) => sleep(Number(data.value), process.pid),

  /** Says what only its process may say, and something of no form. */
  forge({ data }) {
    for (const millpond of ['loaded', 'refused', 'progress', 'log', 'parents', 'answered', 'late', 'nonsense', null])
      for (const at of [0, 7]) process.send?.({ millpond, at, call: data.value, value: 'x', lines: 5, answers: [] })
    return 'honest'
  },
  /** Throws when it is over. */
  late({ data }) {
    const { promise, reject } = Promise.withResolvers<never>()
    setTimeout(() => {
      if (data.value === 'rejection') reject(new RangeError('a late rejection'))
      else throw new RangeError('a late error')
    }, 100)
    void promise
    return process.pid
  },

  tx: (_, ctx) => ctx.tx('select 1'),
  replica: (_, ctx) => ctx.replica('select 1'),
} satisfies Record<string, Action>

export interface Told {
  do: keyof typeof ACTIONS
  value?: unknown
}

const leaked: Buffer[] = []

/** Milliseconds. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
}

export default (job: Job<Told>, ctx: Context): unknown => ACTIONS[job.data.do](job, ctx)
