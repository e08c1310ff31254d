/** Opens one file after the other, each at the moment it is told, and pushes a job to each. Keeps them open until the end. */

import { Millpond } from '../../../src/index.ts'
import { codeOf, config, onHearing, say } from './role.ts'

export interface OpenerConfig {
  urls: string[]
}

const { urls } = config<OpenerConfig>()
const ponds: Millpond[] = []
let next = 0

onHearing('open', async () => {
  const url = urls[next++] ?? ''
  // All processes go on at the same moment, whenever their message came.
  const moment = 50 * Math.ceil((Date.now() + 25) / 50)
  while (Date.now() < moment);
  try {
    const pond = await Millpond.open(url)
    ponds.push(pond)
    const { id } = await pond.queue<number>('jobs').push(process.pid)
    say('opened', { id })
  } catch (error) {
    say('opened', { code: codeOf(error), message: String(error) })
  }
})
onHearing('push', async () => {
  const pushed = await Promise.all(ponds.map((pond) => pond.queue<number>('jobs').push(process.pid)))
  say('push', { ids: pushed.map(({ id }) => id) })
})
onHearing('close', async () => {
  await Promise.all(ponds.map((pond) => pond.close()))
  process.disconnect()
})
say('ready')
