import type { Context, Job } from '../../../src/index.ts'

export default async function handler(job: Job<string>, ctx: Context): Promise<unknown> {
  const first = await ctx.step('first', () => process.pid)
  if (job.data === 'crashes' && job.attempt === 1) process.exit(3)
  const signal = await ctx.waitFor('go')
  const second = await ctx.step('second', () => ({ of: job.data }))
  const refused = await ctx.step('third', () => 3, { transaction: true }).catch((error: { code: string }) => error.code)
  return { first, signal, second, refused }
}
