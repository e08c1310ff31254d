/** A consumer of reports: `consumer.ts URL isolated|plain`. Its handler runs in this process, or in processes of its own. */
import { Millpond } from '../../../src/index.ts'
import { ready } from '../../role.ts'
import handler, { type Report } from './reports.ts'
import { CONCURRENCY, MEMORY, QUEUE, SETTINGS } from './settings.ts'

const [url = '', how = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)
const reports = pond.queue<Report>(QUEUE, SETTINGS)
// A dead job is what is measured.
pond.on('dead', () => {})
if (how === 'isolated') {
  const isolate = { memory: `${MEMORY}MB`, cpu: '30s' } as const
  reports.work(new URL('reports.ts', import.meta.url), { isolate, concurrency: CONCURRENCY })
} else reports.work(handler, { concurrency: CONCURRENCY })
ready()
