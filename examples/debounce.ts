// Edits come in bursts. The index is rebuilt 200 ms after the last one, at most 1 s after the first; and once more after
// a rebuild that an edit came into.
import { Millpond } from 'millpond'

const pond = await Millpond.open(process.env.STORE ?? 'memory:')
const index = pond.queue<{ document: number; version: number }>('index')
const edited = (document: number, version: number) =>
  index.push(
    { document, version },
    { key: `document:${document}`, delay: '200ms', once: { replace: true, maxWait: '1s', whenRunning: 'follow' } },
  )

index.work(async ({ data }) => {
  console.log(`document ${data.document}: version ${data.version} is indexed`)
  // Somebody edits it right now.
  if (data.version === 5) await edited(data.document, 6)
})

// Five edits, one job.
const { id } = await edited(1, 1)
for (let version = 2; version <= 5; version++) {
  const again = await edited(1, version)
  console.log(`version ${version}: ${again.replaced && again.id === id ? 'replaces the one before' : 'another job'}`)
}

await pond.result(id, { timeout: '10s' })
const follower = await edited(1, 6) // the follower, or a new job if that is done
await pond.result(follower.id, { timeout: '10s' })
await pond.close()
