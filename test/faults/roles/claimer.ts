/** Claims jobs of a queue with limits and completes them; tells when it held each, by the machine's clock. */

import { setTimeout as sleep } from 'node:timers/promises'
import { open } from '../../../src/stores/postgres/index.ts'
import { config, say } from './role.ts'

export interface ClaimerConfig {
  url: string
  schema: string
  queue: string
}

export interface Span {
  group: string
  from: number
  to: number
}

const { url, schema, queue } = config<ClaimerConfig>()
const store = await open(url, { schema })
const now = () => performance.timeOrigin + performance.now()
for (;;) {
  const { jobs } = await store.operations.claim({ queue, worker: `w${process.pid}`, limit: 20, lease: null })
  const from = now()
  await sleep(1)
  const to = now()
  if (jobs.length === 0) continue
  say('did', { spans: jobs.map(({ group }) => ({ group, from, to })) })
  const completions = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
  await store.operations.complete({ queue, items: completions })
}
