/**
 * A worker that tells the test all that happens to its jobs, and that holds those with `gate` until it hears "open".
 * Effects are rows of the table `effects` with `transaction`, else messages.
 */

import { Millpond, type QueueOptions, type WorkOptions } from '../../../src/index.ts'
import { config, hearing, insertion, onHearing, say, sayTrouble } from './role.ts'

export interface GatedConfig {
  url: string
  queue: string
  options: QueueOptions
  work: WorkOptions
  /** Where a job with `gate` is held: not at all, before its effect, or after it. */
  hold: 'never' | 'before' | 'after'
}

const { url, queue, options, work, hold } = config<GatedConfig>()
const pond = await Millpond.open(url)
sayTrouble(pond)
for (const name of ['completed', 'failed', 'stale', 'lost'] as const) pond.on(name, ({ id }) => say(name, { id }))
const open = hearing('open')
const insert = insertion(url, 'effects', ['id', 'fence'])

const worker = pond.queue<{ gate?: true }>(queue, options).work(async ({ id, data, fence }, ctx) => {
  say('started', { id, fence })
  const gate = async (where: typeof hold) => {
    if (data.gate !== true || hold !== where) return
    ctx.signal.addEventListener('abort', () => say('aborted', { id, code: ctx.signal.reason?.code }))
    say('held', { id, fence })
    await open
  }
  await gate('before')
  if (work.transaction === true) await ctx.tx(insert, [id, fence])
  else say('effect', { id, fence })
  await gate('after')
}, work)

say('ready', { worker: worker.id })
onHearing('load', () => say('load', worker.load))
onHearing('close', async () => {
  say('closed', { ...(await pond.close()) })
  process.disconnect()
})
