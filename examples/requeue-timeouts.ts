// node requeue-timeouts.ts [--go] [--after POSITION]: sends the jobs back to waiting that died of a timeout.
import { parseArgs } from 'node:util'
import { Millpond } from 'millpond'

const { values } = parseArgs({ options: { go: { type: 'boolean' }, after: { type: 'string' } } })
const pond = await Millpond.open(process.env.STORE ?? 'sqlite:app.db')
const reports = pond.queue('reports')
const filter = { errorText: 'TIMEOUT' }

if (!values.go) {
  const { count, isEstimate, sample, from } = await reports.requeueAll(filter, { dryRun: true })
  console.log(`${isEstimate ? 'about ' : ''}${count} jobs, such as`)
  for (const job of sample) console.log(`  ${job.id} ${job.error?.message}`)
  console.log(`To requeue them: node requeue-timeouts.ts --go --after ${from}`)
} else {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  const { changed, matched, next } = await reports.requeueAll(filter, {
    signal: stop.signal,
    ...(values.after !== undefined && { after: values.after }),
    onProgress: ({ looked, total, changed }) => console.log(`${looked} of ${total} looked at, ${changed} requeued`),
  })
  console.log(`${changed} requeued, ${matched - changed} left, since a live job has their key`)
  if (next !== undefined) console.log(`To go on: node requeue-timeouts.ts --go --after ${next}`)
}
await pond.close()
