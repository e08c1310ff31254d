/** A handler of batches; each job says what becomes of it. */
import { appendFileSync } from 'node:fs'
import type { BatchContext, Job } from '../../../src/index.ts'
import { aborted } from './told.ts'

export interface Part {
  do: 'double' | 'parents' | 'error' | 'retry' | 'give up' | 'progress' | 'throw' | 'other' | 'exit' | 'tx' | 'obey'
  value?: unknown
}

export default async (jobs: Job<Part>[], ctx: BatchContext): Promise<unknown> => {
  const answers = []
  for (const job of jobs) {
    const { do: what, value } = job.data
    if (what === 'throw') throw new RangeError('the whole batch')
    if (what === 'other') return []
    if (what === 'exit') process.exit(5)
    if (what === 'tx') await ctx.tx('select 1')
    if (what === 'progress') ctx.of(job).progress(value)
    if (what === 'obey') {
      const own = ctx.of(job).signal
      await aborted(own)
      appendFileSync(String(value), `${own.reason.code}, whole ${ctx.signal.aborted}\n`)
    }
    if (what === 'parents') answers.push((await ctx.of(job).parents()).map((parent) => parent.result))
    else if (what === 'error') answers.push(new RangeError('no'))
    else if (what === 'retry') answers.push(ctx.retry('1h', 'later'))
    else if (what === 'give up') answers.push(ctx.giveUp('never'))
    else answers.push(typeof value === 'number' ? value * 2 : value)
  }
  return answers
}
