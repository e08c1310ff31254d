/** `limited.ts URL OPTIONS QUEUE LOG`: runs jobs until it is killed; appends to LOG when each starts and ends, with its group and id. */

import { appendFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Millpond } from '../../../src/index.ts'

const [url = '', options = '{}', name = '', log = ''] = process.argv.slice(2)
const pond = await Millpond.open(url, JSON.parse(options))
pond.queue(name).work(
  async (job) => {
    appendFileSync(log, `start ${job.group} ${job.id} TypeScript\n`)
    await setTimeout(2)
    appendFileSync(log, `end ${job.group} ${job.id} TypeScript\n`)
  },
  { concurrency: 8 },
)
