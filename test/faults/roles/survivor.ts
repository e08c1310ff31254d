/** Does to a damaged file all that a service does, and tells of each refusal, once per code. It must neither crash nor hang. */

import { Millpond } from '../../../src/index.ts'
import { codeOf, config, say } from './role.ts'

export interface SurvivorConfig {
  url: string
  queue: string
}

const { url, queue } = config<SurvivorConfig>()
const refusals = new Map<string, string>()

async function attempt<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    refusals.set(codeOf(error), String(error))
    return undefined
  }
}

const pond = await attempt(() => Millpond.open(url))
if (pond !== undefined) {
  // What a handler is given is not the store's fault, but a damaged payload must not pass for a good one.
  pond.on('error', (error) => refusals.set(error.code, error.message))
  pond.on('dead', ({ error }) => refusals.set(error.code, error.message))
  const jobs = pond.queue<string>(queue, { retry: { attempts: 1 } })
  await attempt(() => Promise.all(Array.from({ length: 50 }, (_, i) => jobs.push(`new ${i}`))))
  await attempt(() => jobs.stats())
  await attempt(() => jobs.jobs('waiting', { limit: 1000 }))
  const idle = Promise.withResolvers<void>()
  let last = performance.now()
  let wrong = 0
  const worker = jobs.work(({ data }) => {
    last = performance.now()
    if (!/^(new|old) \d+(x*)$/.test(data)) wrong++
  })
  // No job for a while, or nothing but errors: there is nothing left that it could do.
  const timer = setInterval(() => {
    if (performance.now() - last > 400) idle.resolve()
  }, 20)
  await idle.promise
  clearInterval(timer)
  await attempt(() => worker.close({ timeout: 100 }))
  await attempt(() => pond.close({ timeout: 100 }))
  say('wrong', { wrong })
}
say('done', { refusals: [...refusals] })
process.disconnect()
