import { Millpond } from 'millpond'

const pond = await Millpond.open('sqlite:app.db')
const emails = pond.queue<{ to: string }>('emails', { retry: { attempts: 5 } })

// The producer, say a web handler: once push resolves, the job is on the disk.
const { id } = await emails.push({ to: 'ada@example.org' }, { key: 'welcome:42' })

// The worker: here, or in any other process that opens the same file.
emails.work(
  async (job, ctx) => {
    console.log(`mail to ${job.data.to}, attempt ${job.attempt}`)
    ctx.signal.throwIfAborted() // aborted when the job was cancelled, timed out, or lost to another worker
    return { sent: true }
  },
  { concurrency: 50 },
)

console.log(await pond.result(id, { timeout: '10s' })) // { sent: true }
await pond.close() // finishes what runs, gives back the rest
