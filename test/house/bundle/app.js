/** What is bundled: every entry point, on each store of the arguments. Prints a line for each, closes nothing that need not be, and ends by itself. */
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { batch, coalesce, Millpond } from 'millpond'
import { Cache } from 'millpond/cache'
import { serve } from 'millpond/serve'
import { accept } from 'millpond/web'

async function main(handler, urls) {
  for (const url of urls) {
    const pond = await Millpond.open(url)
    const queue = pond.queue('q')
    const worker = queue.work((job) => `${job.data} is done`)
    const { id } = await queue.push('it')
    console.log(pond.store.name, await pond.result(id, { timeout: '20s' }))
    await worker.close()
    if (pond.store.name === 'sqlite') await inTransaction(pond, url)
  }
  await isolated(handler)
  const cache = await Cache.open(urls.find((url) => url.startsWith('redis:')) ?? 'memory:')
  console.log('cache', await cache.wrap(async () => 'loaded', { key: () => 'k', ttl: '1m' })())
  const served = await serve('memory:')
  const document = await served.handle(new Request('http://localhost/openapi.json'))
  console.log('serve', (await document.json()).info.version)
  await served.close()
  console.log([accept, batch, coalesce].map((each) => typeof each).join(' '))
}

/** The handler's process has the code that the bundle holds. */
async function isolated(handler) {
  const pond = await Millpond.open('memory:')
  const queue = pond.queue('q')
  queue.work(pathToFileURL(handler), { isolate: { memory: '256MB', cpu: '10s' }, concurrency: 1 })
  const { id } = await queue.push(20n)
  console.log('isolated', await pond.result(id, { timeout: '20s' }))
  pond.on('error', ({ message }) => console.log(message.replace(/file:\S+,/, 'no-handler,').replace(/'.*'/, 'it')))
  const failed = new Promise((resolve) => pond.on('error', resolve))
  const other = pond.queue('other')
  other.work(pathToFileURL(`${handler}.none`), { isolate: {}, concurrency: 1 })
  await other.push(1)
  await failed
  await pond.close()
}

/** The SQL runs on the caller's connection, outside of the thread. */
async function inTransaction(pond, url) {
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  // The store's thread may be writing.
  db.exec('pragma busy_timeout = 5000')
  db.exec('begin immediate')
  await pond.queue('r').push('inside', { tx: db })
  db.exec('commit')
  db.close()
  console.log('sqlite', (await pond.queue('r').stats()).counts.waiting)
}

const [, , handler, ...urls] = process.argv
main(handler, urls).catch((error) => {
  console.error(error)
  process.exitCode = 1
})
