/** `worker.ts URL OPTIONS QUEUE LOG`: runs jobs until it is killed; appends the id of each run to LOG. */

import { appendFileSync } from 'node:fs'
import { Millpond } from '../../../src/index.ts'

const [url = '', options = '{}', name = '', log = ''] = process.argv.slice(2)
const pond = await Millpond.open(url, JSON.parse(options))
pond.queue(name).work(async (job) => appendFileSync(log, `${job.id}\n`), { concurrency: 20 })
