/** `producer.ts URL OPTIONS QUEUE FIRST COUNT`: pushes numbered jobs; prints the id of each as soon as it is acknowledged. */

import { Millpond } from '../../../src/index.ts'

const AT_ONCE = 20

const [url = '', options = '{}', name = '', first = '0', count = '0'] = process.argv.slice(2)
const pond = await Millpond.open(url, JSON.parse(options))
const queue = pond.queue<{ n: number }>(name, { lease: '1500ms' })
const end = Number(first) + Number(count)
for (let start = Number(first); start < end; start += AT_ONCE) {
  const numbers = Array.from({ length: Math.min(AT_ONCE, end - start) }, (_, at) => start + at)
  const pushed = await Promise.all(numbers.map((n) => queue.push({ n })))
  process.stdout.write(pushed.map(({ id }) => `${id}\n`).join(''))
}
await pond.close()
