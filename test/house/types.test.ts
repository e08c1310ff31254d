/** What the types promise: nothing here runs, the compiler checks it. A type that is not `true` where it should be fails `tsc`. */
import { test } from 'node:test'
import type { CacheOptions, CallOptions, LifeOptions, SetOptions, WrapOptions } from '../../src/cache/index.ts'
import type * as api from '../../src/index.ts'
import type { Millpond } from '../../src/index.ts'
import type { Delivery, ServeOptions } from '../../src/serve/index.ts'
import type { AcceptOptions, CoalesceResponsesOptions, FollowOptions, IdempotencyOptions } from '../../src/web/index.ts'
import type { CloseServerOptions, NodeOptions } from '../../src/web/node.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Holds for `true` only. */
const holds = <_ extends true>(): void => {}

/** Whether every optional member also takes `undefined`, for programs that are compiled with `exactOptionalPropertyTypes`. */
type TakesUndefined<Options> = {
  [Name in keyof Options as Record<never, never> extends Pick<Options, Name> ? Name : never]-?: undefined
} extends infer Undefined
  ? Undefined extends Partial<Options>
    ? true
    : false
  : never

interface Mail {
  to: string
  at: Date
  parts: { bytes: Buffer; size: bigint | null }[]
}
interface Receipt {
  sent: boolean
}

test('every optional option takes undefined', () => {
  holds<TakesUndefined<api.BatchCallOptions>>()
  holds<TakesUndefined<api.BatchOptions<1>>>()
  holds<TakesUndefined<api.CoalesceCallOptions>>()
  holds<TakesUndefined<api.CoalesceOptions<1, 1>>>()
  holds<TakesUndefined<api.CloseOptions>>()
  holds<TakesUndefined<api.PondCloseOptions>>()
  holds<TakesUndefined<api.CommonOptions>>()
  holds<TakesUndefined<api.MemoryOptions>>()
  holds<TakesUndefined<api.SqliteOptions>>()
  holds<TakesUndefined<api.RedisOptions>>()
  holds<TakesUndefined<api.PostgresOptions>>()
  holds<TakesUndefined<api.RabbitmqOptions>>()
  holds<TakesUndefined<api.OnceOptions>>()
  holds<TakesUndefined<api.ResultOptions>>()
  holds<TakesUndefined<api.GroupLimitOptions>>()
  holds<TakesUndefined<api.QueueLimitOptions>>()
  holds<TakesUndefined<api.PushOptions>>()
  holds<TakesUndefined<api.PushManyOptions<1>>>()
  holds<TakesUndefined<api.PageOptions>>()
  holds<TakesUndefined<api.QueueOptions>>()
  holds<TakesUndefined<NonNullable<api.QueueOptions['retry']>>>()
  holds<TakesUndefined<NonNullable<api.QueueOptions['keep']>>>()
  holds<TakesUndefined<api.StatsOptions>>()
  holds<TakesUndefined<api.WorkOptions>>()
  holds<TakesUndefined<api.BatchWorkOptions>>()
  holds<TakesUndefined<api.BatchJobOptions>>()
  holds<TakesUndefined<api.IsolateOptions>>()
  holds<TakesUndefined<Omit<api.IsolatedWorkOptions, 'isolate'>>>()
  holds<TakesUndefined<api.BackoffOptions>>()
  holds<TakesUndefined<api.RateOptions>>()
  holds<TakesUndefined<CacheOptions>>()
  holds<TakesUndefined<CallOptions>>()
  holds<TakesUndefined<LifeOptions>>()
  holds<TakesUndefined<SetOptions>>()
  holds<TakesUndefined<WrapOptions<1>>>()
  holds<TakesUndefined<ServeOptions>>()
  holds<TakesUndefined<Delivery>>()
  holds<TakesUndefined<AcceptOptions>>()
  holds<TakesUndefined<CoalesceResponsesOptions>>()
  holds<TakesUndefined<FollowOptions>>()
  holds<TakesUndefined<IdempotencyOptions>>()
  holds<TakesUndefined<CloseServerOptions>>()
  holds<TakesUndefined<NodeOptions>>()
  // The check itself: this one does not.
  holds<Same<TakesUndefined<{ a?: string }>, false>>()
})

test('a misspelt option does not compile, whether the URL is known or comes from the environment', () => {
  const uncalled = async (open: typeof Millpond.open, queue: api.Queue<Mail>, mail: Mail) => {
    const url = process.env.STORE ?? 'sqlite:app.db'
    await open('sqlite:app.db', { sync: 'normal', busyTimeout: 100, signals: { before: () => {} }, maxPayload: 5 })
    await open(new URL('postgres://host/db'), { schema: 'jobs', listen: 'off', client: () => {} })
    await open(url, { prefix: 'jobs', wait: 1 })
    await open('memory:', { spill: { url: 'sqlite:spill.db', sync: 'normal' } })
    // @ts-expect-error: sync
    await open('sqlite:app.db', { synch: 'normal' })
    // @ts-expect-error: sync
    await open(url, { synch: 'normal' })
    // @ts-expect-error: full or normal
    await open('sqlite:app.db', { sync: 'fast' })
    // @ts-expect-error: maxPayload
    await open('memory:', { maxPaylod: 5 })
    // @ts-expect-error: sync, in the options of the spill store
    await open('memory:', { spill: { url: 'sqlite:spill.db', synch: 'normal' } })
    // @ts-expect-error: before
    await open('memory:', { signals: { bevore: () => {} } })

    await queue.push(mail, { key: 'k', once: { for: '10m', since: 'push' }, partOf: 'id' })
    // @ts-expect-error: once
    await queue.push(mail, { key: 'k', replace: true })
    // @ts-expect-error: replace
    await queue.push(mail, { key: 'k', once: { replaced: true } })
    // @ts-expect-error: partOf
    await queue.push(mail, { within: 'id' })
  }
  void uncalled
})

test('a program may close its server by a signal, although that uses the pond', () => {
  const uncalled = async (listen: (pond: Millpond) => { close(): void }, open: typeof Millpond.open) => {
    const pond = await open('sqlite:app.db', { signals: { before: () => server.close() } })
    const server = listen(pond)
  }
  void uncalled
})

test('a handler and a list get the data as stored, and results have the type that the queue names', () => {
  const uncalled = async (pond: Millpond) => {
    const queue = pond.queue<Mail, Receipt>('mail')
    queue.work((job) => {
      holds<Same<typeof job.data.at, string>>()
      holds<Same<(typeof job.data.parts)[number]['bytes'], Uint8Array>>()
      holds<Same<(typeof job.data.parts)[number]['size'], bigint | null>>()
      return { sent: true }
    })
    queue.work((job, ctx) => (job.attempt > 3 ? ctx.giveUp('no use') : Promise.resolve({ sent: true })))
    // @ts-expect-error: the queue says that a handler returns a Receipt
    queue.work(() => ({ sent: 'yes' }))
    const [listed] = await queue.jobs('done')
    holds<Same<NonNullable<typeof listed>['result'], Receipt | undefined>>()
    if (listed?.data) holds<Same<typeof listed.data.at, string>>()
    const receipt = await pond.result<Receipt>('id')
    holds<Same<typeof receipt, Receipt>>()
    const named: api.Queue<Mail, Receipt> = queue
    return named
  }
  void uncalled
})

test('a duration may come from an environment variable', () => {
  const uncalled = (pond: Millpond) => {
    return pond.queue('q', { lease: process.env.LEASE, keep: { done: process.env.KEEP_DONE } })
  }
  void uncalled
})
