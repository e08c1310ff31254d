/** Works off jobs of many steps, and writes each call of a step's function into the file that all processes share. */

import { openSync, writeSync } from 'node:fs'
import { config, insertion, onHearing, openPatiently, say, sayTrouble } from './role.ts'

export interface StepperConfig {
  url: string
  queue: string
  /** Steps of a job, the ones that wait left out. */
  steps: number
  ledger: string
  /** Written to by a step of each job that commits with its record; undefined: the store has no transactions. */
  table: string | undefined
}

const { url, queue, steps, ledger, table } = config<StepperConfig>()
// Appended at once, so that the lines of all processes have one order.
const file = openSync(ledger, 'a')
const pond = await openPatiently(url)
sayTrouble(pond)
pond.on('dead', ({ id, error }) => say('dead', { id, error }))
const children = pond.queue<number, number>('children')
children.work((job) => job.data * 2)
let ran = 0

pond.queue<number>(queue).work(
  async (job, ctx) => {
    const results: unknown[] = []
    for (let n = 0; n < steps; n++) {
      const result = await ctx.step('step', () => {
        writeSync(file, `${job.id} ${n} ${process.pid}\n`)
        if (ran++ === 0) say('busy')
        return job.data + n
      })
      results.push(result)
      // Different jobs wait at different steps.
      if (n === job.data % steps) results.push(await ctx.waitFor('go'))
      if (n === (job.data + 2) % steps) await ctx.sleep('nap', 1000)
      if (n === (job.data + 4) % steps) results.push(await ctx.run('child', children, job.data))
    }
    if (table !== undefined) {
      const text = insertion(url, table, ['id', 'attempt', 'fence'])
      await ctx.step('write', (tx) => tx(text, [job.id, job.attempt, job.fence]), { transaction: true })
    }
    return results
  },
  { concurrency: 20 },
)

onHearing('close', async () => {
  await pond.close()
  say('closed')
  process.disconnect()
})
