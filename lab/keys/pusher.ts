/** A process that pushes jobs of few keys, as web handlers do: several loops, each awaits its push. One loop has the first key to itself. */
import { isMillpondError, Millpond } from '../../src/index.ts'
import { ready } from '../role.ts'
import { quantile } from '../statistics.ts'

const [url = '', keys = '40', loops = '10', replaces = ''] = process.argv.slice(2)
const pond = await Millpond.open(url)
const queue = pond.queue<number>('keyed')
const once = replaces === '' ? {} : { delay: '1s', once: { replace: true, maxWait: '3s' } }
let isOver = false

const firstKey = { pushes: 0, rejected: 0, messages: [] as string[] }
const others = { times: [] as number[], rejected: 0, messages: [] as string[] }

async function loop(): Promise<void> {
  while (!isOver) {
    const key = `k${1 + Math.floor(Math.random() * (Number(keys) - 1))}`
    const began = performance.now()
    await queue.push(0, { key, ...once }).catch((error: unknown) => note(others, error))
    others.times.push(performance.now() - began)
  }
}

async function loopOfFirst(): Promise<void> {
  while (!isOver) {
    await queue.push(0, { key: 'k0', ...once }).catch((error: unknown) => note(firstKey, error))
    firstKey.pushes++
  }
}

function note(of: { rejected: number; messages: string[] }, error: unknown): void {
  of.rejected++
  if (of.messages.length < 3) of.messages.push(isMillpondError(error) ? `${error.code}: ${error.message}` : `${error}`)
}

await queue.push(0, { key: 'warm' })
// The first message begins it, the second ends it.
let loopsUnderWay: Promise<unknown> | undefined
ready(async () => {
  if (loopsUnderWay === undefined) {
    loopsUnderWay = Promise.all(Array.from({ length: Number(loops) }, loop))
    void loopOfFirst()
    return { began: true }
  }
  isOver = true
  await loopsUnderWay
  const { times, rejected, messages } = others
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => quantile(times, share))
  return { pushes: times.length, p50, p99, most, rejected, messages, firstKey }
})
