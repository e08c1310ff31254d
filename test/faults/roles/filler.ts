/** Pushes until the limit on the size of its files is reached, and once more when it is told that there is room. */

import { Millpond } from '../../../src/index.ts'
import { pushUntilFull } from '../disk.ts'
import { config, hearing, say } from './role.ts'

export interface FillerConfig {
  url: string
  queue: string
}

const { url, queue } = config<FillerConfig>()
const more = hearing('more')
const pond = await Millpond.open(url)
const { ids, codes } = await pushUntilFull(pond, queue)
say('full', { ids, codes: [...codes] })
await more
const pushed = await pond.queue<string>(queue).pushMany(Array.from({ length: 200 }, () => 'y'.repeat(20_000)))
say('more', { ids: pushed.map(({ id }) => id) })
await pond.close()
process.disconnect()
